package simulate

import (
	"math"
	"time"

	"courier/schemas"
)

// origin is the start of the scored submissions, as events show it.
var origin = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// timeAt converts seconds since origin to a time.
func timeAt(seconds float64) time.Time {
	return origin.Add(time.Duration(math.Round(seconds * float64(time.Second))))
}

func jobStamp(id, job string, run uint32, at float64) schemas.JobStamp {
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: timeAt(at)}, JobID: job, Run: run}
}

func (r *runningJob) id() string { return r.job.Request.JobID }

func (r *runningJob) setting(n *node) schemas.Setting {
	q := &r.job.Request
	return schemas.Setting{
		Model:           q.Model,
		Dataset:         q.Dataset,
		BatchSize:       r.choice.batch,
		CPUs:            r.choice.cpus,
		Epochs:          r.epochs,
		TrainingSamples: q.TrainingSamples,
		Nodes:           []string{n.Name},
	}
}

func submittedEvent(q *schemas.JobRequest, a *schemas.Advice, at float64) *schemas.Submitted {
	e := &schemas.Submitted{
		JobStamp: jobStamp(q.JobID+"/submitted", q.JobID, 0, at),
		Request:  *q,
		Advice:   *a,
	}
	e.Advice.EventID = e.EventID
	return e
}

func withdrawnEvent(q *schemas.JobRequest, at float64) *schemas.Ended {
	return &schemas.Ended{
		JobStamp: jobStamp(schemas.EndedID(q.JobID, 0, schemas.EventCancelled), q.JobID, 0, at),
		Outcome:  schemas.EventCancelled,
		Reason:   "refused",
	}
}

func (r *runningJob) startedEvent(n *node) *schemas.Started {
	return &schemas.Started{
		JobStamp:  jobStamp(schemas.StartedID(r.id(), 1), r.id(), 1, r.startedAt),
		Setting:   r.setting(n),
		NodeCores: n.Cores,
	}
}

// epochEvent returns the event of the epoch that ends now.
func (r *runningJob) epochEvent(n *node) *schemas.Epoch {
	return &schemas.Epoch{
		JobStamp:        jobStamp(schemas.EpochID(r.id(), 1, r.epoch), r.id(), 1, n.now),
		Setting:         r.setting(n),
		Epoch:           r.epoch,
		DurationSeconds: n.now - r.beganAt,
		DurationSource:  schemas.DurationReported,
		NodeCores:       n.Cores,
		Accuracy:        new(r.measuredAccuracy(r.epoch)),
		ConcurrentJobs:  new(r.jobSeconds / (n.now - r.beganAt)),
	}
}

func (r *runningJob) finishedEvent(n *node) *schemas.Ended {
	return &schemas.Ended{
		JobStamp: jobStamp(schemas.EndedID(r.id(), 1, schemas.EventFinished), r.id(), 1,
			n.now),
		Setting:         r.setting(n),
		Outcome:         schemas.EventFinished,
		ExitCode:        new(int32),
		DurationSeconds: n.now - r.startedAt,
		StartupSeconds:  new(r.job.family.StartupSeconds * r.job.noise.startup),
		EpochsDone:      r.epochs,
		Accuracy:        new(r.measuredAccuracy(r.epochs)),
	}
}

func (r *runningJob) measuredAccuracy(epoch uint32) float64 {
	return min(1, max(0, r.job.accuracy(r.choice, epoch)+r.job.noise.accuracy[epoch-1]))
}

func (n *node) sampleEvent(number uint64, w *World, at float64) *schemas.Sample {
	busy := min(1, float64(n.processes)/float64(n.Cores))
	const boot = "sim"
	return &schemas.Sample{
		Stamp: schemas.Stamp{
			EventID: schemas.SampleID(n.Name, boot, number),
			At:      timeAt(at),
		},
		Node:            n.Name,
		BootID:          boot,
		Number:          number,
		IntervalSeconds: w.SampleSeconds,
		Cores:           n.Cores,
		CPURatio:        &busy,
	}
}
