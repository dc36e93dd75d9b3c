package advisor

import (
	"math"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// runningSince returns a state with running jobs with these first sequences; the job with sequence
// s started s minutes after noon.
func runningSince(firsts ...uint64) *cluster.Cluster {
	c := cluster.New()
	for _, first := range firsts {
		id := string(rune('a' + first%26))
		started := noon.Add(time.Duration(first) * time.Minute)
		e := &schemas.Started{JobStamp: stampOf(id, schemas.StartedID(id, 1), 1)}
		e.At = started
		c.Apply(e, first, started)
	}
	return c
}

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

const gibibyte = 1 << 30

// The log has 100 events of 1 GiB, with sequences 1 to 100.
func TestLogNeed(t *testing.T) {
	whole := bus.StreamInfo{
		First: 1, Last: 100, Messages: 100, Bytes: 100 * gibibyte, MaxBytes: 200 * gibibyte,
		MaxAge: 1000 * time.Minute,
	}
	half := whole
	half.First, half.Messages, half.Bytes = 51, 50, 50*gibibyte
	endless := whole
	endless.MaxBytes, endless.MaxAge = -1, 0
	for _, c := range []struct {
		name     string
		c        *cluster.Cluster
		place    bus.StreamInfo
		job      string
		gib      int64
		age      time.Duration
		headroom float64
	}{
		{"no job runs", runningSince(), whole, "", 0, 0, 1},
		{"since a fifth of the log", runningSince(81, 90), whole, "d", 41, 38 * time.Minute, 0.9},
		{"since its begin", runningSince(1, 90), whole, "b", 201, 198 * time.Minute, 0.5},
		{"its first events are dropped", runningSince(41), half, "p", 121, 118 * time.Minute, 0},
		{"without a limit", runningSince(1), endless, "b", 201, 198 * time.Minute, 1},
		{"recorded a moment ago", runningSince(101), whole, "", 0, 0, 1},
	} {
		a := &Advisor{cluster: c.c}
		n := a.logNeed(c.place, noon.Add(100*time.Minute))
		if n.job != c.job || n.bytes != c.gib*gibibyte || n.age != c.age {
			t.Errorf("%s: got need %+v, want job %q, %d GiB and %s", c.name, n, c.job, c.gib, c.age)
		}
		if got := logHeadroom(c.place, n); math.Abs(got-c.headroom) > 1e-9 {
			t.Errorf("%s: headroom %g, want %g", c.name, got, c.headroom)
		}
	}
}

// A stream that is too small for the oldest running job is widened up to the maximum, and never
// narrowed.
func TestCheckLog_WidensTheStream(t *testing.T) {
	const mebibyte = 1 << 20
	for _, c := range []struct {
		name    string
		limit   int64 // initial limit of the stream
		ceiling int64
		want    int64
	}{
		{"too small", mebibyte, 64 * gibibyte, gibibyte},
		{"up to the ceiling", mebibyte, 2 * mebibyte, 2 * mebibyte},
		{"the ceiling is lower", 4 * mebibyte, mebibyte, 4 * mebibyte},
		{"never", mebibyte, -1, mebibyte},
		{"large enough", 2 * gibibyte, 64 * gibibyte, 2 * gibibyte},
		{"without a limit", -1, 64 * gibibyte, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := bustest.NewServer(t)
			b := server.Connect(t)
			_, js := connect(t, server.URL())
			limit(t, js, c.limit)
			_, last := (&jobPublisher{t, b}).beginRun(1)
			a := restoredAdvisor(t, b)
			a.o.MaxLogBytes = c.ceiling
			replayed(t, a)
			if a.applied != last || a.cluster.RunningJobs() != 1 {
				t.Fatalf("after event %d: got %d running jobs, want 1", a.applied, a.cluster.RunningJobs())
			}
			if err := a.checkLog(within(t)); err != nil {
				t.Fatal(err)
			}
			place, err := b.StreamInfo(within(t), schemas.StreamJob)
			if err != nil || place.MaxBytes != c.want {
				t.Errorf("got size limit %d, error %v; want %d", place.MaxBytes, err, c.want)
			}
		})
	}
}
