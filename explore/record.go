package explore

import (
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// Outcomes of a run.
const (
	StatusFinished   = "finished"
	StatusFailed     = "failed"
	StatusIncomplete = "incomplete" // fewer epochs than asked for, or none recognized
)

// MeasuredRun is one measured run.
type MeasuredRun struct {
	Block
	Job            int // index in the block, from 1
	Epochs         int // asked for
	EpochsDone     int
	TotalSeconds   float64  // from the start of the command to its end
	StartupSeconds float64  // 0: unknown
	Accuracy       *float64 // of the last epoch; nil: not measured
	Loss           *float64 // of the last epoch; nil: not measured

	CPUUtilization *float64 // share of the node's processors that was busy; nil: not measured
	IOWaitRatio    *float64 // share of the node's processors that waited for storage
	NodeProcesses  int      // of the block: CPUs of all its jobs
	Node           string
	StartedAt      time.Time
	EndedAt        time.Time
	Status         string

	Curve []EpochPoint // the epochs in order
}

// EpochPoint is one epoch of a run.
type EpochPoint struct {
	Epoch    int
	Seconds  float64
	Loss     *float64
	Accuracy *float64
}

// EpochSeconds returns the mean duration of the epochs; 0 without any.
func (r *MeasuredRun) EpochSeconds() float64 {
	if len(r.Curve) == 0 {
		return 0
	}
	sum := 0.0
	for _, p := range r.Curve {
		sum += p.Seconds
	}
	return sum / float64(len(r.Curve))
}

// nodeType is the type of the only node of a study.
const nodeType = "this node"

// configuration returns the configuration of a cell for package evidence.
func (o *Options) configuration(c Cell) evidence.Configuration {
	of := schemas.Setting{Model: o.Model, Workers: uint32(c.Workers)}
	return evidence.Configuration{
		Model:     of.LearnedModel(),
		Dataset:   o.Dataset,
		NodeType:  nodeType,
		BatchSize: c.BatchSize,
		CPUs:      c.processes(),
		NodeLoad: evidence.NodeLoad{
			ConcurrentJobs:   float64(c.Jobs),
			ProcessesPerCore: float64(c.Jobs*c.processes()) / float64(max(1, o.Cores)),
		},
	}
}

// evidenceRun returns a record for package evidence.
func (o *Options) evidenceRun(r *MeasuredRun) evidence.Run {
	run := evidence.Run{
		ID:             r.RunID(),
		Configuration:  o.configuration(r.Cell),
		StartedAt:      r.StartedAt,
		EndedAt:        r.EndedAt,
		StartupSeconds: r.StartupSeconds,
	}
	for _, p := range r.Curve {
		e := evidence.EpochRecord{Number: p.Epoch, Seconds: p.Seconds}
		if p.Accuracy != nil {
			e.Accuracy, e.HasAccuracy = *p.Accuracy, true
		}
		run.Epochs = append(run.Epochs, e)
	}
	return run
}
