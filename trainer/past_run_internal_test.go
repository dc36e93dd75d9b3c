package trainer

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
)

func TestRun_ImplausibleRunsAreSkippedAndCounted(t *testing.T) {
	type told struct {
		job    string
		model  string
		epochs []uint32
		times  []float64
	}
	precise := told{"precise", "m", []uint32{1, 2, 3}, []float64{1.2345678, 1.3456789, 1.4567891}}
	honest := told{"honest", "m", []uint32{1, 2, 3}, []float64{1, 2, 3}}
	for _, c := range []struct {
		name string
		runs []told
		want string
	}{
		{"an honest run", []told{honest}, ""},
		{
			"a run that goes on from a checkpoint",
			[]told{{"a", "m", []uint32{4, 5, 6}, []float64{1, 2, 3}}}, "",
		},
		{"an epoch is missing", []told{{"a", "m", []uint32{1, 3}, []float64{1, 2}}}, ""},
		{
			"a restart in the same run",
			[]told{{"a", "m", []uint32{1, 2, 1, 2}, []float64{1, 2, 1, 2}}}, skippedBack,
		},
		{
			"times copied from another run",
			[]told{precise, {"b", "m", []uint32{1, 2, 3}, []float64{1.2345678, 1.3456789, 1.4567891}}},
			skippedCopied,
		},
		{
			"times in whole seconds",
			[]told{honest, {"b", "m", []uint32{1, 2, 3}, []float64{1, 2, 3}}}, "",
		},
		{
			"two epochs may be alike by chance",
			[]told{{
				"a", "m", []uint32{1, 2}, []float64{1, 2},
			}, {"b", "m", []uint32{1, 2}, []float64{1, 2}}},
			"",
		},
		{
			"a clock of whole seconds",
			[]told{{
				"a", "m", []uint32{1, 2, 3}, []float64{2, 2, 2},
			}, {"b", "m", []uint32{1, 2, 3}, []float64{2, 2, 2}}},
			"",
		},
		{
			"another job's log", []told{{"a", "other", []uint32{1, 2, 3}, []float64{1, 2, 3}}},
			skippedModel,
		},
	} {
		p, sequence := NewPast(), uint64(0)
		for _, r := range c.runs {
			at := time.Unix(1_790_000_000, 0)
			stamp := func(id string) schemas.JobStamp {
				return schemas.JobStamp{
					Stamp: schemas.Stamp{EventID: r.job + id, At: at},
					JobID: r.job,
					Run:   1,
				}
			}
			set := schemas.Setting{Model: "m", BatchSize: 4, CPUs: 1, Nodes: []string{"n-" + r.job}}
			p.Add(&schemas.Started{JobStamp: stamp("s"), Setting: set}, sequence)
			set.Model = r.model
			for i, seconds := range r.times {
				at = at.Add(time.Duration(seconds * float64(time.Second)))
				sequence++
				p.Add(&schemas.Epoch{
					JobStamp:        stamp(fmt.Sprint("e", i)),
					Setting:         set,
					Epoch:           r.epochs[i],
					DurationSeconds: seconds,
					DurationSource:  schemas.DurationReported,
				}, sequence)
			}
		}
		examples := p.Examples(schemas.TargetEpochTime)
		if c.want == "" && (len(p.Skipped()) > 0 || len(examples) == 0) || c.want != "" &&
			p.Skipped()[c.want] != 1 {
			t.Errorf("%s: skipped %v, %d examples; want %q", c.name, p.Skipped(), len(examples),
				c.want)
		}
		if c.want != "" && len(examples) != 3*(len(c.runs)-1) {
			t.Errorf("%s: %d examples, want none of the implausible run", c.name, len(examples))
		}
	}
}

func TestThin(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var examples []Example
	for n := range 1000 {
		batch := uint32(4)
		if n%100 == 0 {
			batch = uint32(8 + n) // ten configurations with one example each
		}
		examples = append(examples, Example{
			Model:    "m",
			Features: schemas.Features{BatchSize: batch},
			Value:    float64(n),
			At:       at(n),
		})
	}
	thinned := thin(examples, 100)
	settings := map[uint32]int{}
	for i, x := range thinned {
		settings[x.Features.BatchSize]++
		if x.Features.BatchSize == 4 && x.Value < 890 {
			t.Errorf("the old example %v was kept", x.Value)
		}
		if i > 0 && x.At.Before(thinned[i-1].At) {
			t.Error("the order changed")
		}
	}
	if len(thinned) != 100 || len(settings) != 11 || settings[4] != 90 {
		t.Errorf("%d examples of %d configurations, %d of the large one; want 100, 11, 90",
			len(thinned), len(settings), settings[4])
	}
	if all := thin(examples, 5); len(all) != 11 {
		t.Errorf("%d examples, want one for each of 11 configurations", len(all))
	}
	if all := thin(examples, 1000); len(all) != 1000 {
		t.Errorf("%d examples, want all", len(all))
	}
}

// Runs with several workers are a model of their own, with the CPUs of all workers.
func TestPast_LearnsWorkersApart(t *testing.T) {
	p, at := NewPast(), time.Unix(1_790_000_000, 0)
	set := schemas.Setting{Model: "m", BatchSize: 4, CPUs: 2, Workers: 3, Epochs: 1, Nodes: []string{"n"}}
	stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: "s", At: at}, JobID: "a", Run: 1}
	p.Add(&schemas.Started{JobStamp: stamp, Setting: set}, 1)
	stamp.EventID, stamp.At = "e", at.Add(time.Second)
	p.Add(&schemas.Epoch{JobStamp: stamp, Setting: set, Epoch: 1, DurationSeconds: 1}, 2)
	x := p.Examples(schemas.TargetEpochTime)
	if len(x) != 1 || x[0].Model != "m (3 workers)" || x[0].Features.CPUs != 6 || x[0].Features.Load.Processes != 6 {
		t.Errorf("got %+v, want an example of m (3 workers) with 6 processes", x)
	}
}
