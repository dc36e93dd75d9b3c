package spool

import (
	"bytes"
	"os"
	"testing"

	"courier/schemas"

	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a small file system, or skips the test if that is not permitted.
func mountTmpfs(t *testing.T, flags uintptr, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "mode=0700,size="+size); err != nil {
		t.Skip("mounting is not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A partial line of a full disk must not damage the next event.
func TestRunFile_HoldsCompleteEventsOnAFullDisk(t *testing.T) {
	dir := mountTmpfs(t, 0, "8k")
	f := newRunFile(dir, "", "a", 1)
	kept := 0
	for n := uint32(1); n <= 100; n++ {
		if err := f.append(epochEvent("a", n)); err != nil {
			break
		}
		kept++
	}
	if kept == 0 || kept == 100 || f.sizeBytes > 8<<10 {
		t.Fatalf("%d events in %d bytes, want a full disk", kept, f.sizeBytes)
	}
	must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64k"))
	if err := f.append(endedEvent("a")); err != nil { // space was freed
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.path)
	must(t, err)
	read := 0
	count := func(schemas.Event, int64) error { read++; return nil }
	fail := func(line []byte, err error) { t.Errorf("unreadable line %q: %v", line, err) }
	if _, err := readLines(bytes.NewReader(text), count, fail); err != nil || read != kept+1 {
		t.Errorf("%d events read, %v, want %d and the end", read, err, kept)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}
