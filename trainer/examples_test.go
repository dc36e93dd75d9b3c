package trainer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/schemas"
	"courier/trainer"
)

// origin is recent, because an event that is stored more than an hour late counts as imported.
var origin = time.Now().UTC().Truncate(time.Second).Add(-45 * time.Minute)

func at(seconds float64) time.Time {
	return origin.Add(time.Duration(seconds * float64(time.Second)))
}

func setting(batch, cpus uint32) schemas.Setting {
	return schemas.Setting{
		Model:     "m",
		BatchSize: batch,
		CPUs:      cpus,
		Epochs:    3,
		Nodes:     []string{"n"},
	}
}

func started(job string, run uint32, s float64, set schemas.Setting) *schemas.Started {
	e := &schemas.Started{Setting: set, NodeCores: 2}
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: schemas.StartedID(job, run), At: at(s)},
		JobID: job,
		Run:   run,
	}
	return e
}

func epochEvent(job string, run, number uint32, s, seconds float64, set schemas.Setting) *schemas.Epoch {
	accuracy := 0.9 + 0.01*float64(number)
	e := &schemas.Epoch{
		Setting:         set,
		Epoch:           number,
		DurationSeconds: seconds,
		DurationSource:  schemas.DurationReported,
		NodeCores:       2,
		Accuracy:        &accuracy,
	}
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: schemas.EpochID(job, run, number), At: at(s)},
		JobID: job,
		Run:   run,
	}
	return e
}

func ended(job string, run uint32, outcome string, s, seconds float64, set schemas.Setting) *schemas.Ended {
	e := &schemas.Ended{Setting: set, Outcome: outcome, DurationSeconds: seconds}
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: schemas.EndedID(job, run, outcome), At: at(s)},
		JobID: job,
		Run:   run,
	}
	return e
}

// untimed returns the end of a run whose epochs were not recognized.
func untimed(job string, run uint32, s, seconds float64, set schemas.Setting) *schemas.Ended {
	e := ended(job, run, schemas.EventFinished, s, seconds, set)
	e.EpochsDone = set.Epochs
	return e
}

// pastAfter applies events in order.
func pastAfter(events ...schemas.Event) *trainer.Past {
	p := trainer.NewPast()
	for i, e := range events {
		p.Add(e, uint64(i+1))
	}
	return p
}

// brief formats the relevant fields of examples.
func brief(examples []trainer.Example) string {
	s := ""
	for _, x := range examples {
		s += fmt.Sprintf("b%d c%d jobs %.2f procs %.2f done %d value %.2f; ",
			x.Features.BatchSize, x.Features.CPUs, x.Features.Load.ConcurrentJobs,
			x.Features.Load.Processes, x.Features.EpochsDone, x.Value)
	}
	return s
}

func TestPast_Examples(t *testing.T) {
	a, b := setting(16, 2), setting(64, 1)
	lost := ended("a", 1, schemas.EventLost, 2.5, 0, a)
	lost.EventID = schemas.LostID("a", 2)
	byArrival := func(number uint32, s, seconds float64) *schemas.Epoch {
		e := epochEvent("a", 1, number, s, seconds, a)
		e.DurationSource = schemas.DurationArrival
		return e
	}
	large := setting(64, 2)
	moved := []schemas.Event{
		started("a", 1, 0, a), epochEvent("a", 1, 1, 2, 2, a), epochEvent("a", 1, 2, 4, 2, a),
		epochEvent("a", 1, 3, 5, 1, large), epochEvent("a", 1, 4, 7, 2, a),
	}
	changed := func(number uint32, s, seconds float64) *schemas.Epoch {
		e := byArrival(number, s, seconds)
		e.BatchSize = 64
		return e
	}
	whole, startup, accuracy := untimed("a", 1, 6, 6, a), 1.5, 0.96
	whole.StartupSeconds, whole.Accuracy = &startup, &accuracy
	begun := []schemas.Event{
		started("a", 1, 0, a), epochEvent("a", 1, 1, 5, 2, a), epochEvent("a", 1, 2, 7, 2, a),
	}
	one := setting(16, 1)
	elastic := started("a", 1, 0, a)
	elastic.Moves = []string{schemas.MoveCPUs}
	using := func(number uint32, s, seconds, cpuSeconds float64) *schemas.Epoch {
		e := epochEvent("a", 1, number, s, seconds, one)
		e.JobCPUSeconds = &cpuSeconds
		return e
	}
	for _, c := range []struct {
		name   string
		events []schemas.Event
		target string
		want   string
	}{
		{
			"an elastic run after it lent a CPU",
			[]schemas.Event{elastic, epochEvent("a", 1, 1, 2, 2, a), using(2, 6, 4, 4)},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; " +
				"b16 c1 jobs 1.00 procs 1.00 done 2 value 4.00; ",
		},
		{
			"an elastic run that used a CPU that nobody else needed",
			[]schemas.Event{elastic, epochEvent("a", 1, 1, 2, 2, a), using(2, 4, 2, 4)},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; ",
		},
		{
			"the first epoch by arrival includes the start-up",
			[]schemas.Event{started("a", 1, 0, a), byArrival(1, 5, 5), byArrival(2, 7, 2)},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 2 value 2.00; ",
		},
		{
			"a single epoch timed by arrival is used",
			[]schemas.Event{started("a", 1, 0, a), byArrival(1, 5, 5)}, schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 5.00; ",
		},
		{
			"an epoch alone", []schemas.Event{started("a", 1, 0, a), epochEvent("a", 1, 1, 2, 2, a)},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; ",
		},
		{
			"a neighbour all the time",
			[]schemas.Event{
				started("a", 1, 0, a), started("b", 1, 0, b), epochEvent("a", 1, 1, 4, 4, a),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 2.00 procs 3.00 done 1 value 4.00; ",
		},
		{
			"a neighbour that comes after three quarters",
			[]schemas.Event{
				started("a", 1, 0, a), started("b", 1, 3, b), epochEvent("a", 1, 1, 4, 4, a),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.25 procs 2.25 done 1 value 4.00; ",
		},
		{
			"a neighbour that comes and goes",
			[]schemas.Event{
				started("a", 1, 0, a), started("b", 1, 1, b),
				ended("b", 1, schemas.EventFailed, 2, 1, b),
				started("b", 2, 3, b),
				epochEvent("a", 1, 1, 4, 4, a),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.50 procs 2.50 done 1 value 4.00; ",
		},
		{
			"a neighbour that has gone",
			[]schemas.Event{
				started("b", 1, 0, b), ended("b", 1, schemas.EventFailed, 1, 1, b),
				started("a", 1, 1, a), epochEvent("a", 1, 1, 3, 2, a),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; ",
		},
		{
			"a copy",
			[]schemas.Event{
				started("a", 1, 0, a), epochEvent("a", 1, 1, 2, 2, a), epochEvent("a", 1, 1, 2, 2, a),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; ",
		},
		{
			"a number that goes back",
			[]schemas.Event{
				started("a", 1, 0, a), epochEvent("a", 1, 2, 2, 2, a), epochEvent("a", 1, 1, 4, 2, a),
			},
			schemas.TargetEpochTime, "",
		},
		{
			"a job that was lost and is back",
			[]schemas.Event{
				started("a", 1, 0, a), epochEvent("a", 1, 1, 2, 2, a), lost, epochEvent("a", 1, 2, 4, 2, a),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; " +
				"b16 c2 jobs 1.00 procs 2.00 done 2 value 2.00; ",
		},
		{
			"no epoch was seen: nothing",
			[]schemas.Event{started("a", 1, 0, a), ended("a", 1, schemas.EventFinished, 6, 6, a)},
			schemas.TargetEpochTime, "",
		},
		{
			"epochs that were not timed: the whole job",
			[]schemas.Event{started("a", 1, 0, a), untimed("a", 1, 6, 6, a)},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 3 value 2.00; ",
		},
		{
			"the whole job, less the start-up that is known",
			[]schemas.Event{started("a", 1, 0, a), whole}, schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 3 value 1.50; ",
		},
		{
			"the accuracy of the whole job is that after its epochs",
			[]schemas.Event{started("a", 1, 0, a), whole}, schemas.TargetAccuracy,
			"b16 c2 jobs 1.00 procs 2.00 done 3 value 0.96; ",
		},
		{
			"a job beside which nothing is known of but that it was there",
			[]schemas.Event{
				started("a", 1, 0, a), started("b", 1, 0, b),
				ended("b", 1, schemas.EventFinished, 6, 0, b), whole,
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 2.00 procs 3.00 done 3 value 1.50; ",
		},
		{"start-up while the job runs", begun, schemas.TargetStartup,
			"b16 c2 jobs 1.00 procs 2.00 done 0 value 3.00; "},
		{"start-up, without the time after the last epoch", append(slices.Clone(begun),
			ended("a", 1, schemas.EventFinished, 8.5, 8.5, a)), schemas.TargetStartup,
			"b16 c2 jobs 1.00 procs 2.00 done 0 value 3.00; "},
		{"start-up of a job that was stopped during an epoch", append(slices.Clone(begun),
			ended("a", 1, schemas.EventCancelled, 8.5, 8.5, a)), schemas.TargetStartup,
			"b16 c2 jobs 1.00 procs 2.00 done 0 value 3.00; "},
		{
			"start-up before epochs by arrival whose begin is known",
			[]schemas.Event{
				started("a", 1, 0, a), byArrival(1, 5, 2), byArrival(2, 7, 2),
			},
			schemas.TargetStartup, "b16 c2 jobs 1.00 procs 2.00 done 0 value 3.00; ",
		},
		{
			"epochs by arrival after a start-up of its own",
			[]schemas.Event{
				started("a", 1, 0, a), byArrival(1, 5, 2), byArrival(2, 7, 2),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; b16 c2 jobs 1.00 procs 2.00 done 2 value 2.00; ",
		},
		{
			"start-up of epochs by arrival: the part of the first that is not in their time",
			[]schemas.Event{
				started("a", 1, 0, a), byArrival(1, 5, 5), byArrival(2, 7, 2), byArrival(3, 7.5, 0.5),
			},
			schemas.TargetStartup, "b16 c2 jobs 1.00 procs 2.00 done 0 value 3.00; ",
		},
		{
			"a failed job without epochs",
			[]schemas.Event{started("a", 1, 0, a), ended("a", 1, schemas.EventFailed, 6, 6, a)},
			schemas.TargetEpochTime, "",
		},
		{
			"accuracy: a run counts once",
			[]schemas.Event{
				started("a", 1, 0, a), epochEvent("a", 1, 1, 2, 2, a), epochEvent("a", 1, 2, 4, 2, a),
			},
			schemas.TargetAccuracy,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 0.91; " +
				"b16 c2 jobs 1.00 procs 2.00 done 2 value 0.92; ",
		},
		{
			"a change of the batch size: each epoch's time is of its own", moved,
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 2.00; " +
				"b16 c2 jobs 1.00 procs 2.00 done 2 value 2.00; " +
				"b64 c2 jobs 1.00 procs 2.00 done 3 value 1.00; " +
				"b16 c2 jobs 1.00 procs 2.00 done 4 value 2.00; ",
		},
		{"a change of the batch size: no accuracy behind it", moved, schemas.TargetAccuracy,
			"b16 c2 jobs 1.00 procs 2.00 done 1 value 0.91; " +
				"b16 c2 jobs 1.00 procs 2.00 done 2 value 0.92; "},
		{
			"a change of the batch size timed by arrival may be a restart",
			[]schemas.Event{
				started("a", 1, 0, a), byArrival(1, 5, 5), byArrival(2, 7, 2), changed(3, 10, 3),
				changed(4, 11, 1),
			},
			schemas.TargetEpochTime,
			"b16 c2 jobs 1.00 procs 2.00 done 2 value 2.00; " +
				"b64 c2 jobs 1.00 procs 2.00 done 4 value 1.00; ",
		},
	} {
		if got := brief(pastAfter(c.events...).Examples(c.target)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
