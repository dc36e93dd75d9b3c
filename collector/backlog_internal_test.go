package collector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var errAway = errors.New("away")

// nobody takes no sample.
func nobody(context.Context, []*schemas.Sample) error { return errAway }

func numbered(n uint64) *schemas.Sample {
	s := &schemas.Sample{Node: "n", BootID: "boot", Number: n, IntervalSeconds: 2, Cores: 1}
	s.EventID, s.At = schemas.SampleID("n", "boot", n), noon.Add(time.Duration(n)*time.Second)
	return s
}

// waitingSamples fills the backlog with samples of these numbers while nobody
// takes them.
func waitingSamples(t *testing.T, b *backlog, from, until uint64) {
	t.Helper()
	for n := from; n <= until; n++ {
		b.add(numbered(n))
		if err := b.publish(t.Context(), 1, time.Now().Add(time.Hour), nobody); !errors.Is(err, errAway) {
			t.Fatalf("publish() = %v, want that nobody takes it", err)
		}
	}
}

// taken publishes everything and returns the numbers. Samples keep their times.
func taken(t *testing.T, b *backlog) (numbers []uint64) {
	t.Helper()
	if err := b.publish(t.Context(), 1, time.Now().Add(time.Hour), func(_ context.Context, some []*schemas.Sample) error {
		for _, s := range some {
			if want := noon.Add(time.Duration(s.Number) * time.Second); !s.At.Equal(want) {
				t.Errorf("sample %d is of %s, want %s", s.Number, s.At, want)
			}
			numbers = append(numbers, s.Number)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return numbers
}

func numbers(from, until uint64) (all []uint64) {
	for n := from; n <= until; n++ {
		all = append(all, n)
	}
	return all
}

// value is that of a counter or gauge.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		t.Fatal(err)
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names = append(names, strings.TrimLeft(strings.TrimSuffix(filepath.Base(f), segmentSuffix), "0"))
	}
	return names
}

func TestBacklog_OutlivesTheProcess(t *testing.T) {
	dir, m := t.TempDir(), newMetrics(nil)
	b := openBacklog(dir, quiet, m)
	b.segmentBytes = 1000
	waitingSamples(t, b, 1, 20)
	if n, oldest, size := b.waiting(); n != 20 || !oldest.Equal(noon.Add(time.Second)) || size == 0 || len(b.memory) != 0 {
		t.Errorf("%d samples wait since %s in %d bytes, %d in memory, want 20 on disk", n, oldest, size, len(b.memory))
	}
	if value(t, m.backlog) != 20 || value(t, m.spool) == 0 || value(t, m.oldest) <= 0 {
		t.Errorf("metrics tell %v samples, %v bytes, %v seconds", value(t, m.backlog), value(t, m.spool), value(t, m.oldest))
	}
	last := filepath.Join(dir, fmt.Sprintf("%020d%s", b.last().number, segmentSuffix))
	b.close()
	text, err := os.ReadFile(last) // it was killed while it wrote the next one
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(last, append(text, []byte(`{"subject":"node.n.sample","event":{"ev`)...), 0o600); err != nil {
		t.Fatal(err)
	}

	b = openBacklog(dir, quiet, m)
	defer b.close()
	if got := b.newest("boot"); got != 20 {
		t.Errorf("newest(boot) = %d, want 20", got)
	}
	if got := b.newest("another"); got != 0 {
		t.Errorf("newest(another) = %d, want none", got)
	}
	waitingSamples(t, b, 21, 23)
	if diff := cmp.Diff(numbers(1, 23), taken(t, b)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if left := files(t, dir); len(left) > 0 || value(t, m.backlog) != 0 || value(t, m.spool) != 0 || value(t, m.dropped) != 0 {
		t.Errorf("files %v are left, metrics tell %v samples, %v dropped", left, value(t, m.backlog), value(t, m.dropped))
	}
	waitingSamples(t, b, 24, 24) // it can be used again
	if diff := cmp.Diff(numbers(24, 24), taken(t, b)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// What was taken is not handed out again when the rest waits on.
func TestBacklog_GoesOnWhereItWasStopped(t *testing.T) {
	b := openBacklog(t.TempDir(), quiet, newMetrics(nil))
	defer b.close()
	b.some = 2
	waitingSamples(t, b, 1, 10)
	var got []uint64
	for until := uint64(3); len(got) < 10; until += 3 {
		_ = b.publish(t.Context(), 1, time.Now().Add(time.Hour), func(_ context.Context, some []*schemas.Sample) error {
			for _, s := range some {
				if s.Number > until {
					return errAway
				}
			}
			for _, s := range some {
				got = append(got, s.Number)
			}
			return nil
		})
	}
	if diff := cmp.Diff(numbers(1, 10), got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}

	waitingSamples(t, b, 11, 12)
	if err := b.publish(t.Context(), 1, time.Now(), nobody); err != nil { // no time is left: that is no failure
		t.Errorf("publish() = %v, want a pause", err)
	}
	if n, oldest, _ := b.waiting(); n != 2 || !oldest.Equal(noon.Add(11*time.Second)) {
		t.Errorf("%d samples wait since %s, want both", n, oldest)
	}
}

// Samples that wait for others of their message wait on disk, and go together.
func TestBacklog_HandsOutSomeTogether(t *testing.T) {
	for _, dir := range []string{t.TempDir(), ""} {
		b := openBacklog(dir, quiet, newMetrics(nil))
		b.some = 4
		var got []int
		take := func(_ context.Context, some []*schemas.Sample) error {
			got = append(got, len(some))
			return nil
		}
		for n := uint64(1); n <= 10; n++ {
			b.add(numbered(n))
			if err := b.publish(t.Context(), 3, time.Now().Add(time.Hour), take); err != nil {
				t.Error(err)
			}
			if dir != "" && len(b.memory) > 0 {
				t.Errorf("%d samples wait in memory, want none", len(b.memory))
			}
		}
		if err := b.publish(t.Context(), 1, time.Now().Add(time.Hour), take); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{3, 3, 3, 1}, got); diff != "" {
			t.Errorf("handed out together (-want +got):\n%s", diff)
		}
		waitingSamples(t, b, 11, 20)
		got = nil
		if err := b.publish(t.Context(), 1, time.Now().Add(time.Hour), take); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{4, 4, 2}, got); diff != "" {
			t.Errorf("handed out together after an outage (-want +got):\n%s", diff)
		}
		b.close()
	}
}

func TestBacklog_GivesUpTheOldest(t *testing.T) {
	dir, m := t.TempDir(), newMetrics(nil)
	b := openBacklog(dir, quiet, m)
	defer b.close()
	b.segmentBytes, b.mostSegments = 1000, 3
	waitingSamples(t, b, 1, 100)
	got := taken(t, b)
	if len(got) == 0 || got[len(got)-1] != 100 {
		t.Fatalf("published %v, want the newest", got)
	}
	if diff := cmp.Diff(numbers(got[0], 100), got); diff != "" || value(t, m.dropped) != float64(100-len(got)) {
		t.Errorf("%v dropped, published (-want +got):\n%s", value(t, m.dropped), diff)
	}

	memory := openBacklog("", quiet, m)
	waitingSamples(t, memory, 1, maxBacklog+5)
	if diff := cmp.Diff(numbers(6, maxBacklog+5), taken(t, memory)); diff != "" {
		t.Errorf("published from memory (-want +got):\n%s", diff)
	}
}

func TestBacklog_ToleratesWhatIsNotASample(t *testing.T) {
	dir := t.TempDir()
	b := openBacklog(dir, quiet, newMetrics(nil))
	waitingSamples(t, b, 1, 2)
	b.close()
	for name, text := range map[string]string{
		"00000000000000000002.samples": "garbage\n\n{}\n" + `{"subject":"job.a.epoch","event":{}}` + "\n",
		"00000000000000000003.samples": strings.Repeat("x", 3*schemas.MaxMessageBytes),
		"notes.samples":                "mine",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := newMetrics(nil)
	b = openBacklog(dir, quiet, m)
	defer b.close()
	waitingSamples(t, b, 3, 4)
	if diff := cmp.Diff(numbers(1, 4), taken(t, b)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"notes"}, files(t, dir)); diff != "" {
		t.Errorf("files left (-want +got):\n%s", diff)
	}
}

func TestBacklog_UsesMemoryWhereThereIsNoDisk(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	used := t.TempDir()
	owner := openBacklog(used, quiet, newMetrics(nil))
	defer owner.close()
	for _, dir := range []string{filepath.Join(blocked, "spool"), used} { // no folder can be made there; another process uses it
		text := &told{lines: make(chan string, 100)}
		b := openBacklog(dir, text.logger(), newMetrics(nil))
		text.await(t, "memory only")
		waitingSamples(t, b, 1, 3)
		if diff := cmp.Diff(numbers(1, 3), taken(t, b)); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		b.close()
	}
}

// A clock that was set back makes nothing older than the present.
func TestMetrics_AgeIsNeverNegative(t *testing.T) {
	m := newMetrics(nil)
	m.waiting(1, time.Now().Add(time.Hour), 0)
	if got := value(t, m.oldest); got != 0 {
		t.Errorf("age = %v, want 0", got)
	}
}
