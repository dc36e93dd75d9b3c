package trainer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/regress/treefile"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// busyLog returns events of runs that overlap on a few nodes: some run on two nodes, change their
// batch size, are lost and come back, have no epochs, or never end.
func busyLog(seed uint64, jobs int) []schemas.Event {
	random := rand.New(rand.NewPCG(seed, 1))
	begin := time.Unix(1_790_000_000, 0).UTC()
	var all []schemas.Event
	for n := range jobs {
		all = append(all, busyJob(random, n, begin.Add(time.Duration(n)*10*time.Second))...)
	}
	slices.SortStableFunc(all, func(a, b schemas.Event) int {
		return a.Stamped().At.Compare(b.Stamped().At)
	})
	return all
}

func busyJob(random *rand.Rand, n int, at time.Time) (all []schemas.Event) {
	job := fmt.Sprint("job-", n)
	set := schemas.Setting{Model: fmt.Sprint("m", random.IntN(3)), BatchSize: 4 << random.IntN(3),
		CPUs: 1 << random.IntN(2), Epochs: 6, Nodes: []string{fmt.Sprint("n", random.IntN(4))}}
	if n%7 == 0 {
		set.Nodes = []string{"n0", "n2"}
	}
	stamp := func(id string) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: job, Run: 1}
	}
	all = append(all, &schemas.Started{
		JobStamp:  stamp(schemas.StartedID(job, 1)),
		Setting:   set,
		NodeCores: 4,
	})
	seconds := 20 * (1 + 8/float64(set.BatchSize)) / float64(set.CPUs) * math.Exp(
		0.05*random.NormFloat64(),
	)
	at = at.Add(3 * time.Second)
	for number := range uint32(6) {
		if n%11 == 0 {
			break // no epochs are recognized
		}
		if n%13 == 0 && number == 3 {
			set.BatchSize *= 2
		}
		if n%5 == 0 && number == 2 {
			lost := &schemas.Ended{
				JobStamp: stamp(schemas.LostID(job, uint64(n))),
				Outcome:  schemas.EventLost,
			}
			all = append(all, lost)
		}
		took := seconds * (1 + 0.01*random.Float64())
		at = at.Add(time.Duration(took * float64(time.Second)))
		accuracy := 0.9 + 0.01*float64(number)
		all = append(all, &schemas.Epoch{
			JobStamp:        stamp(schemas.EpochID(job, 1, number+1)),
			Setting:         set,
			Epoch:           number + 1,
			DurationSeconds: took,
			DurationSource:  schemas.DurationReported,
			NodeCores:       4,
			Accuracy:        &accuracy,
		})
	}
	if n%17 == 0 {
		return all // the run never ends
	}
	at = at.Add(time.Second)
	return append(all, &schemas.Ended{
		JobStamp:        stamp(schemas.EndedID(job, 1, schemas.EventFinished)),
		Setting:         set,
		Outcome:         schemas.EventFinished,
		DurationSeconds: 6 * seconds,
	})
}

func addAll(p *Past, events []schemas.Event, first uint64) {
	for i, e := range events {
		p.Add(e, first+uint64(i))
	}
}

func everyExample(p *Past) map[string][]Example {
	all := map[string][]Example{}
	for _, target := range schemas.Targets() {
		all[target] = p.Examples(target)
	}
	return all
}

// Duplicates, and a part of the log that is read again, change nothing.
func TestPast_IgnoresDuplicatesAndReplayedEvents(t *testing.T) {
	events := busyLog(1, 300)
	limits := Limits{SettingRuns: 8, Runs: 90, Spans: 30, OpenRuns: 40, RunEpochs: 4}
	for _, c := range []struct {
		name string
		read func(*Past)
	}{
		{"each event twice", func(p *Past) {
			for i, e := range events {
				p.Add(e, uint64(i+1))
				p.Add(e, uint64(i+1))
			}
		}},
		{"a copy of each event some events later", func(p *Past) {
			for i, e := range events {
				p.Add(e, uint64(i+1))
				if i >= 5 && events[i-5].Stamped().EventID[:4] != "lost" {
					p.Add(events[i-5], uint64(i+1))
				}
			}
		}},
		{"a database and the log, which overlap", func(p *Past) {
			addAll(p, events[:600], 1)
			addAll(p, events[400:], 401)
		}},
		{"in two parts, with fits between", func(p *Past) {
			addAll(p, events[:700], 1)
			everyExample(p)
			addAll(p, events[700:], 701)
		}},
	} {
		want, got := NewLimitedPast(limits), NewLimitedPast(limits)
		addAll(want, events, 1)
		c.read(got)
		if diff := cmp.Diff(everyExample(want), everyExample(got)); diff != "" {
			t.Errorf("%s (-read once +read with repetitions):\n%s", c.name, diff)
		}
	}
}

// A bounded past has a subset of the examples of an unbounded one: dropped runs still count as
// neighbours.
func TestPast_DroppedRunsStayNeighbours(t *testing.T) {
	events := busyLog(2, 600)
	all, few := NewPast(), NewLimitedPast(Limits{SettingRuns: 5, Runs: 60, Spans: 20})
	addAll(all, events, 1)
	addAll(few, events, 1)
	for _, target := range schemas.Targets() {
		known := map[string]Example{}
		key := func(x Example) string { return fmt.Sprint(x.Job, x.At) }
		for _, x := range all.Examples(target) {
			known[key(x)] = x
		}
		examples := few.Examples(target)
		for _, x := range examples {
			if diff := cmp.Diff(known[key(x)], x); diff != "" {
				t.Fatalf("%s of %s (-unbounded +bounded):\n%s", target, x.Job, diff)
			}
		}
		if len(examples) == 0 || len(examples) > len(known)/2 {
			t.Errorf("%s: %d of %d examples remain, want some but at most half",
				target, len(examples), len(known))
		}
	}
}

// addShortRun adds run n of a log: one epoch, and its end a second later.
func addShortRun(p *Past, n int, set schemas.Setting) {
	job, at := fmt.Sprint("job-", n), time.Unix(1_790_000_000+int64(10*n), 0)
	stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: job, At: at}, JobID: job, Run: 1}
	epoch := &schemas.Epoch{JobStamp: stamp, Setting: set, Epoch: 1, DurationSeconds: 5}
	stamp.At = at.Add(time.Second)
	end := &schemas.Ended{JobStamp: stamp, Setting: set, Outcome: schemas.EventFinished}
	addAll(p, []schemas.Event{epoch, end}, uint64(2*n+1))
}

// Beyond its limit a past drops runs of frequent configurations, not the only run of a rare one.
func TestPast_KeepsRareConfigurations(t *testing.T) {
	p := NewLimitedPast(Limits{SettingRuns: 50, Runs: 20, Spans: 5})
	for n := range 300 {
		set := schemas.Setting{
			Model:     "frequent",
			BatchSize: 4,
			CPUs:      1,
			Epochs:    1,
			Nodes:     []string{"n"},
		}
		if n < 10 {
			set.Model = fmt.Sprint("rare-", n)
		}
		addShortRun(p, n, set)
	}
	models, newest := map[string]int{}, ""
	for _, x := range p.Examples(schemas.TargetEpochTime) {
		models[x.Model]++
		newest = x.Job
	}
	if len(models) != 11 || models["frequent"] != 10 || newest != "job-299" {
		t.Errorf("runs by model %v, newest %s; want 10 of the frequent model, the newest, and 10 others",
			models, newest)
	}
	if len(p.runs) > 25 || len(p.archive.configurations) != 11 {
		t.Errorf("%d runs and %d configurations remain, want at most 25 and 11",
			len(p.runs), len(p.archive.configurations))
	}
}

// Models that are trained once do not displace models that are trained every day.
func TestPast_KeepsModelsThatStillRun(t *testing.T) {
	p := NewLimitedPast(Limits{Runs: 20, Spans: 5})
	for n := range 400 {
		set := schemas.Setting{
			Model:     fmt.Sprint("once-", n),
			BatchSize: 4,
			CPUs:      1,
			Nodes:     []string{"n"},
		}
		if n%5 == 0 {
			set.Model = "daily"
		}
		addShortRun(p, n, set)
	}
	models := map[string]int{}
	for _, x := range p.Examples(schemas.TargetEpochTime) {
		models[x.Model]++
	}
	if models["daily"] < rareRuns || len(models) < 10 {
		t.Errorf("models %v remain, want %d runs of the daily model and the newest of others", models,
			rareRuns)
	}
}

// Runs that never end, names that occur once, and long runs need bounded memory.
func TestPast_BoundsRunsThatNeverEnd(t *testing.T) {
	l := Limits{OpenRuns: 10, Spans: 5, Runs: 10, Epochs: 300, RunEpochs: 100}
	p, sequence := NewLimitedPast(l), uint64(0)
	for n := range 200 {
		job := fmt.Sprint("job-", n)
		set := schemas.Setting{Model: job, BatchSize: 4, CPUs: 1, Nodes: []string{"pod-" + job}}
		at := time.Unix(1_790_000_000+int64(n), 0)
		stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: job, At: at}, JobID: job, Run: 1}
		sequence++
		p.Add(&schemas.Started{JobStamp: stamp, Setting: set}, sequence)
	}
	if len(p.runs) != 15 || len(p.nodes) != 15 || len(p.fleet) != 15 || p.open.Len() != 10 {
		t.Errorf("%d runs, %d nodes, %d open; want 10 open and 5 neighbours",
			len(p.runs), len(p.nodes), p.open.Len())
	}
	set := schemas.Setting{Model: "job-199", BatchSize: 4, CPUs: 1, Nodes: []string{"pod-job-199"}}
	for n := range uint32(10_000) {
		at := time.Unix(1_790_000_200+int64(n), 0)
		stamp := schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: schemas.EpochID("job-199", 1, n+1), At: at},
			JobID: "job-199",
			Run:   1,
		}
		sequence++
		p.Add(&schemas.Epoch{
			JobStamp:        stamp,
			Setting:         set,
			Epoch:           n + 1,
			DurationSeconds: 1,
		}, sequence)
	}
	examples := p.Examples(schemas.TargetEpochTime)
	first, last := examples[0].Features.EpochsDone, examples[len(examples)-1].Features.EpochsDone
	if n := len(examples); n < 30 || n > 100 || first != 1 || last < 9_800 {
		t.Errorf("%d epochs from %d to %d, skipped %v; want at most 100 of all 10,000", n, first,
			last, p.Skipped())
	}
	p.Expire(time.Unix(1_790_000_000+11_000, 0))
	if runs, epochs := p.Len(); runs != 0 || epochs != 0 {
		t.Errorf("%d runs and %d epochs from before the window remain", runs, epochs)
	}
}

// A run that is left out says so, with its reason, in the regressor that would have learned from it.
func TestFit_NamesTheRunsThatAreLeftOut(t *testing.T) {
	p, sequence := NewPast(), uint64(0)
	add := func(job string, numbers []uint32, seconds ...float64) {
		at := time.Unix(1_790_000_000, 0)
		stamp := func(id string) schemas.JobStamp {
			return schemas.JobStamp{Stamp: schemas.Stamp{EventID: job + id, At: at}, JobID: job, Run: 1}
		}
		set := schemas.Setting{Model: "m", BatchSize: 4, CPUs: 1, Nodes: []string{"n"}}
		p.Add(&schemas.Started{JobStamp: stamp("s"), Setting: set}, sequence)
		for i, s := range seconds {
			at = at.Add(time.Duration(s * float64(time.Second)))
			sequence++
			p.Add(&schemas.Epoch{JobStamp: stamp(fmt.Sprint(i)), Setting: set, Epoch: numbers[i],
				DurationSeconds: s, DurationSource: schemas.DurationReported}, sequence)
		}
	}
	add("good", []uint32{1, 2, 3}, 10, 10.1, 10.2)
	add("back", []uint32{2, 3, 1}, 10, 10.3, 10.4)
	add("tiny", []uint32{1, 2, 3}, 1e-8, 1e-8, 1e-8)
	examples := p.Examples(schemas.TargetEpochTime)
	files, err := Fit(t.Context(), schemas.TargetEpochTime, examples, nil, Options{setAside: p.aside})
	if err != nil {
		t.Fatal(err)
	}
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, a := range stateOf(file.Manifest()).SetAside {
		reasons[a.Run] = a.Reason
	}
	for run, want := range map[string]string{
		"good/1": "", "back/1": "epoch numbers decrease", "tiny/1": "not plausible",
	} {
		if got := reasons[run]; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("run %s is left out because %q, want %q", run, got, want)
		}
	}
}
