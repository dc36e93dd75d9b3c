package collector

import (
	"bytes"
	"os"
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// mounted is a real file system of a few pages, where that is permitted.
func mounted(t *testing.T, flags uintptr, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
		t.Skip("mounting is not permitted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestBacklog_LosesNothingOnAFullDisk(t *testing.T) {
	text := &told{lines: make(chan string, 100)}
	m := newMetrics(nil)
	b := openBacklog(mounted(t, 0, "16k"), text.logger(), m)
	defer b.close()
	waitingSamples(t, b, 1, 200) // about 250 bytes each
	text.await(t, "no space left")
	n, _, size := b.waiting()
	if n != 200 || size == 0 || size > 16<<10 || len(b.memory) == 0 || len(b.memory) == 200 || value(t, m.spoolFailures) == 0 {
		t.Errorf("%d samples wait, %d bytes on disk, %d in memory, %v failures, want both full", n, size, len(b.memory), value(t, m.spoolFailures))
	}
	if diff := cmp.Diff(numbers(1, 200), taken(t, b)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	waitingSamples(t, b, 201, 210) // there is room again
	if len(b.memory) != 0 {
		t.Errorf("%d samples in memory, want them on disk", len(b.memory))
	}
	if diff := cmp.Diff(numbers(201, 210), taken(t, b)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestBacklog_UsesMemoryOnAReadOnlyDisk(t *testing.T) {
	text := &told{lines: make(chan string, 100)}
	b := openBacklog(mounted(t, unix.MS_RDONLY, "16k"), text.logger(), newMetrics(nil))
	defer b.close()
	text.await(t, "read-only file system")
	waitingSamples(t, b, 1, 3)
	if diff := cmp.Diff(numbers(1, 3), taken(t, b)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// What a full disk took of an event must not spoil the next one that it takes.
func TestSpool_HoldsWholeEventsOnAFullDisk(t *testing.T) {
	dir := mounted(t, 0, "8k")
	s := newSpool(dir, "a", 1)
	kept := 0
	for n := uint32(1); n <= 100; n++ {
		if err := s.append(epochEvent("a", n)); err != nil {
			break
		}
		kept++
	}
	if kept == 0 || kept == 100 || s.size > 8<<10 {
		t.Fatalf("%d events in %d bytes, want a full disk", kept, s.size)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64k"); err != nil {
		t.Fatal(err)
	}
	if err := s.append(endedEvent("a")); err != nil { // somebody made room
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	if err := readSpool(bytes.NewReader(text), func(schemas.Event) error { read++; return nil }, func(line []byte, err error) {
		t.Errorf("line %q is torn: %v", line, err)
	}); err != nil || read != kept+1 {
		t.Errorf("%d events read, %v, want %d and the end", read, err, kept)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
