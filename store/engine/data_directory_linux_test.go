package engine

import (
	"errors"
	"syscall"
	"testing"
)

// A process that is being started has copies of the open files until it executes its program.
func TestDataLock_IsReleasedForAllCopies(t *testing.T) {
	run := t.TempDir()
	l, err := lockData(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	_, err = syscall.Dup(int(l.owner.Fd()))
	if err = errors.Join(err, l.release()); err != nil {
		t.Fatal(err)
	}
	if _, err := lockData(t.Context(), run); err != nil {
		t.Errorf("lockData() after the release = %v, want nil", err)
	}
}
