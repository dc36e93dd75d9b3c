package advisortest

import (
	"time"

	"courier/schemas"
)

// Running is the setting of the jobs of events.
var Running = schemas.Setting{
	Model:     Model,
	BatchSize: 16,
	CPUs:      2,
	Epochs:    10,
	Nodes:     []string{"node-a"},
}

func stamp(job string, run uint32, id string) schemas.JobStamp {
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: time.Now().UTC()}, JobID: job, Run: run}
}

// StartedEvent returns the first event of a run.
func StartedEvent(job string, run uint32) *schemas.Started {
	e := &schemas.Started{Setting: Running, NodeCores: 2, HeartbeatSeconds: 10}
	e.JobStamp = stamp(job, run, schemas.StartedID(job, run))
	return e
}

// EpochEvent returns the event of an epoch of 0.75 s.
func EpochEvent(job string, run, number uint32) *schemas.Epoch {
	e := &schemas.Epoch{
		Setting:         Running,
		Epoch:           number,
		DurationSeconds: 0.75,
		DurationSource:  schemas.DurationReported,
		NodeCores:       2,
	}
	e.JobStamp = stamp(job, run, schemas.EpochID(job, run, number))
	return e
}

// FinishedEvent returns the last event of a run.
func FinishedEvent(job string, run uint32) *schemas.Ended {
	e := &schemas.Ended{
		Setting:         Running,
		Outcome:         schemas.EventFinished,
		EpochsDone:      10,
		DurationSeconds: 7.5,
	}
	e.JobStamp = stamp(job, run, schemas.EndedID(job, run, schemas.EventFinished))
	return e
}

// SampleOf returns a sample of a node, changed by change unless it is nil.
func SampleOf(node string, h schemas.Hardware, change func(*schemas.Sample)) *schemas.Sample {
	s := &schemas.Sample{
		Node:                     node,
		Cores:                    h.Cores,
		CPUModel:                 h.CPUModel,
		SpeedOperationsPerSecond: &h.Speed,
	}
	if change != nil {
		change(s)
	}
	return s
}
