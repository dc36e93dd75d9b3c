package usage

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const statLine = "4242 (a (strange) name) S 17 4242 99 0 -1 4194560 100 200 0 0 150 50 25 5 20 0 1 " +
	"0 12345 1000000 300 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 9 0 0\n"

func TestParseProcess(t *testing.T) {
	got, ok := parseProcess([]byte(statLine))
	want := process{
		pid:           4242,
		parent:        17,
		session:       99,
		ticks:         230,
		residentPages: 300,
	}
	if !ok || got != want {
		t.Errorf("parseProcess() = %+v, %v, want %+v", got, ok, want)
	}
	if got, _ := parseProcess([]byte(strings.Replace(statLine, " 4194560 ", " 4194564 ", 1))); !got.isExiting {
		t.Errorf("parseProcess() = %+v, want an exiting process", got)
	}
	for _, text := range []string{
		"", "1", "1 (x", "1 (x)", ")1 (", "x (y) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
		"1 (y) S a 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
	} {
		if p, ok := parseProcess([]byte(text)); ok {
			t.Errorf("parseProcess(%q) = %+v, want none", text, p)
		}
	}
}

func FuzzParseProcess(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("1 () )"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		parseProcess(text) // must not panic
		parseIO(text)
	})
}

func TestParseIO(t *testing.T) {
	read, written, ok := parseIO(
		[]byte(
			"rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: 4096\nwrite_bytes: 8192\n" +
				"cancelled_write_bytes: 9\n",
		),
	)
	if !ok || read != 4096 || written != 8192 {
		t.Errorf("parseIO() = %v, %v, %v, want 4096, 8192", read, written, ok)
	}
	if _, _, ok := parseIO([]byte("read_bytes: 4096\n")); ok {
		t.Error("parseIO() of an incomplete text succeeded, want an error")
	}
}

func TestFamily(t *testing.T) {
	all := []process{
		{pid: 1, session: 1},
		{pid: 10, parent: 1, session: 10}, // the first process of the job
		{pid: 11, parent: 10, session: 10},
		{pid: 12, parent: 11, session: 12}, // a descendant with its own session
		{pid: 13, parent: 12, session: 12},
		{pid: 14, parent: 1, session: 10}, // a descendant whose parent has ended
		{pid: 20, parent: 1, session: 20}, // not of the job
		{pid: 21, parent: 20, session: 20},
	}
	var got []int
	for _, p := range family(all, 10) {
		got = append(got, p.pid)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]int{10, 11, 12, 13, 14}, got); diff != "" {
		t.Errorf("family() (-want +got):\n%s", diff)
	}
	if got := family([]process{{pid: 5, parent: 5, session: 5}}, 5); len(got) != 1 {
		t.Errorf("family() of a process that is its own parent = %v, want one", got)
	}
}

func TestCounters_Since(t *testing.T) {
	before := counters{cpuSeconds: ptr(5.0), memoryBytes: ptr(100.0), readBytes: ptr(7.0)}
	after := counters{
		cpuSeconds:   ptr(8.0),
		memoryBytes:  ptr(50.0),
		readBytes:    ptr(6.0),
		writtenBytes: ptr(3.0),
	}
	got := after.since(before)
	if got.cpuSeconds == nil || *got.cpuSeconds != 3 || *got.memoryBytes != 50 ||
		got.readBytes != nil || got.writtenBytes != nil {
		t.Errorf("since() = %+v, want 3 s, 50 bytes, and no figure that decreased or was unknown", got)
	}
}
