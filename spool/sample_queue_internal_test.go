package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var errUnreachable = errors.New("unreachable")

func unreachable(context.Context, []*schemas.Sample) error { return errUnreachable }

func numbered(n uint64) *schemas.Sample {
	s := &schemas.Sample{Node: "n", BootID: "boot", Number: n, IntervalSeconds: 2, Cores: 1}
	s.EventID, s.At = schemas.SampleID("n", "boot", n), noon.Add(time.Duration(n)*time.Second)
	return s
}

// fill adds samples with these numbers to the queue while NATS is unreachable.
func fill(t *testing.T, q *SampleQueue, from, until uint64) {
	t.Helper()
	for n := from; n <= until; n++ {
		q.Add(numbered(n))
		err := q.Publish(t.Context(), 1, inAnHour(), unreachable)
		if !errors.Is(err, errUnreachable) {
			t.Fatalf("Publish() = %v, want %v", err, errUnreachable)
		}
	}
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

// drain publishes the whole queue and returns the numbers of the samples. It checks that the
// samples keep their timestamps.
func drain(t *testing.T, q *SampleQueue) (numbers []uint64) {
	t.Helper()
	publish := func(_ context.Context, batch []*schemas.Sample) error {
		for _, s := range batch {
			if want := noon.Add(time.Duration(s.Number) * time.Second); !s.At.Equal(want) {
				t.Errorf("sample %d has the timestamp %s, want %s", s.Number, s.At, want)
			}
			numbers = append(numbers, s.Number)
		}
		return nil
	}
	if err := q.Publish(t.Context(), 1, inAnHour(), publish); err != nil {
		t.Error(err)
	}
	return numbers
}

func numberRange(from, until uint64) (all []uint64) {
	for n := from; n <= until; n++ {
		all = append(all, n)
	}
	return all
}

// segmentNumbers returns the names of the segments without zeros and suffix.
func segmentNumbers(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	must(t, err)
	for _, f := range all {
		names = append(names, strings.TrimLeft(strings.TrimSuffix(filepath.Base(f), segmentSuffix), "0"))
	}
	return names
}

func TestSampleQueue_SurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	q := OpenSamples(dir, quiet)
	q.maxSegmentBytes = 1000
	fill(t, q, 1, 20)
	got := q.Stats()
	isOldest := got.Oldest.Equal(noon.Add(time.Second))
	if got.Samples != 20 || !isOldest || got.Bytes == 0 || len(q.memory) != 0 {
		t.Errorf("stats %+v, %d samples in memory, want 20 on disk", got, len(q.memory))
	}
	last := filepath.Join(dir, fmt.Sprintf("%020d%s", q.last().number, segmentSuffix))
	q.Close()
	text, err := os.ReadFile(last) // the process was killed during the next write
	must(t, err)
	text = append(text, []byte(`{"subject":"node.n.sample","event":{"ev`)...)
	must(t, os.WriteFile(last, text, 0o600))

	q = OpenSamples(dir, quiet)
	defer q.Close()
	if got := q.HighestNumber("boot"); got != 20 {
		t.Errorf("HighestNumber(boot) = %d, want 20", got)
	}
	if got := q.HighestNumber("another"); got != 0 {
		t.Errorf("HighestNumber(another) = %d, want 0", got)
	}
	fill(t, q, 21, 23)
	if diff := cmp.Diff(numberRange(1, 23), drain(t, q)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if left, got := segmentNumbers(t, dir), q.Stats(); len(left) > 0 || got != (SampleStats{}) {
		t.Errorf("segments %v are left, stats %+v, want none", left, got)
	}
	fill(t, q, 24, 24) // the empty queue can be used again
	if diff := cmp.Diff(numberRange(24, 24), drain(t, q)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestSampleQueue_PublishesNoSampleTwiceAfterAnInterruption(t *testing.T) {
	q := OpenSamples(t.TempDir(), quiet)
	defer q.Close()
	q.batchSize = 2
	fill(t, q, 1, 10)
	var got []uint64
	for until := uint64(3); len(got) < 10; until += 3 {
		publish := func(_ context.Context, batch []*schemas.Sample) error {
			for _, s := range batch {
				if s.Number > until {
					return errUnreachable
				}
			}
			for _, s := range batch {
				got = append(got, s.Number)
			}
			return nil
		}
		_ = q.Publish(t.Context(), 1, inAnHour(), publish) // fails until the last round
	}
	if diff := cmp.Diff(numberRange(1, 10), got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}

	fill(t, q, 11, 12)
	if err := q.Publish(t.Context(), 1, time.Now(), unreachable); err != nil {
		t.Errorf("Publish() = %v after the deadline, want nil", err)
	}
	if got := q.Stats(); got.Samples != 2 || !got.Oldest.Equal(noon.Add(11*time.Second)) {
		t.Errorf("stats %+v, want both samples", got)
	}
}

// Samples that wait for a full message wait on disk, and are published together.
func TestSampleQueue_PublishesInBatches(t *testing.T) {
	for _, dir := range []string{t.TempDir(), ""} {
		q := OpenSamples(dir, quiet)
		q.batchSize = 4
		var got []int
		publish := func(_ context.Context, batch []*schemas.Sample) error {
			got = append(got, len(batch))
			return nil
		}
		for n := uint64(1); n <= 10; n++ {
			q.Add(numbered(n))
			if err := q.Publish(t.Context(), 3, inAnHour(), publish); err != nil {
				t.Error(err)
			}
			if dir != "" && len(q.memory) > 0 {
				t.Errorf("%d samples wait in memory, want none", len(q.memory))
			}
		}
		if err := q.Publish(t.Context(), 1, inAnHour(), publish); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{3, 3, 3, 1}, got); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
		fill(t, q, 11, 20)
		got = nil
		if err := q.Publish(t.Context(), 1, inAnHour(), publish); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{4, 4, 2}, got); diff != "" {
			t.Errorf("batch sizes after an outage (-want +got):\n%s", diff)
		}
		q.Close()
	}
}

func TestSampleQueue_DropsTheOldestSamples(t *testing.T) {
	dir := t.TempDir()
	q := OpenSamples(dir, quiet)
	defer q.Close()
	q.maxSegmentBytes, q.maxSegments = 1000, 3
	fill(t, q, 1, 100)
	got := drain(t, q)
	if len(got) == 0 || got[len(got)-1] != 100 {
		t.Fatalf("published %v, want a range that ends with 100", got)
	}
	dropped := q.Stats().Dropped
	if diff := cmp.Diff(numberRange(got[0], 100), got); diff != "" || dropped != 100-len(got) {
		t.Errorf("%d dropped, published (-want +got):\n%s", dropped, diff)
	}

	memory := OpenSamples("", quiet)
	fill(t, memory, 1, maxSamplesInMemory+5)
	if diff := cmp.Diff(numberRange(6, maxSamplesInMemory+5), drain(t, memory)); diff != "" {
		t.Errorf("published from memory (-want +got):\n%s", diff)
	}
}

func TestSampleQueue_SkipsUnreadableLines(t *testing.T) {
	dir := t.TempDir()
	q := OpenSamples(dir, quiet)
	fill(t, q, 1, 2)
	q.Close()
	for name, text := range map[string]string{
		"00000000000000000002.samples": "garbage\n\n{}\n" +
			`{"subject":"job.a.epoch","event":{}}` + "\n",
		"00000000000000000003.samples": strings.Repeat("x", 3*schemas.MaxMessageBytes),
		"notes.samples":                "not a segment",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	q = OpenSamples(dir, quiet)
	defer q.Close()
	fill(t, q, 3, 4)
	if diff := cmp.Diff(numberRange(1, 4), drain(t, q)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"notes"}, segmentNumbers(t, dir)); diff != "" {
		t.Errorf("files left (-want +got):\n%s", diff)
	}
}

func TestSampleQueue_UsesMemoryWithoutADirectory(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(blocked, nil, 0o600))
	used := t.TempDir()
	owner := OpenSamples(used, quiet)
	defer owner.Close()
	// The first directory cannot be created. Another queue uses the second one.
	for _, dir := range []string{filepath.Join(blocked, "spool"), used} {
		text := bustest.NewBuffer()
		q := OpenSamples(dir, slog.New(slog.NewTextHandler(text, nil)))
		text.Await(t, "memory only")
		fill(t, q, 1, 3)
		if diff := cmp.Diff(numberRange(1, 3), drain(t, q)); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		q.Close()
	}
}

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
