package collector

import (
	"log/slog"
)

// Observer tells what a node did between two instants, in the process that asks:
// it needs no collector service and no bus. It is safe for any number of
// goroutines; each keeps its own Marks.
type Observer struct {
	gatherer *gatherer // nil: nothing is measured on this system
	log      *slog.Logger
}

// NewObserver returns an observer of this node. Where node metrics are not
// available it observes nothing, and every figure is absent.
func NewObserver(log *slog.Logger) *Observer {
	g, err := theGatherer()
	if err != nil {
		log.Info("node load is not observed", "reason", err)
	}
	return &Observer{gatherer: g, log: log}
}

// Mark is an instant of the node. Between the zero Mark and another, only what
// holds at the later one is known.
type Mark struct{ reading reading }

// NodeLoad is what a node did between two instants. What was not measured is nil.
type NodeLoad struct {
	Cores       uint32   // logical processors, at least 1
	CPURatio    *float64 // busy share of all processors, 0 to 1; IO-wait is not busy
	IOWaitRatio *float64 // IO-wait share, 0 to 1
	LoadAverage *float64 // one-minute load average at the second instant
}

// Mark returns the present instant.
func (o *Observer) Mark() Mark {
	if o.gatherer == nil {
		return Mark{}
	}
	r, err := o.gatherer.readBrief()
	if err != nil {
		o.log.Debug("node load is not observed", "error", err)
		return Mark{}
	}
	return Mark{r}
}

// Between returns the node's load from one mark to a later one.
func Between(from, until Mark) NodeLoad {
	l := NodeLoad{Cores: until.reading.cores(), LoadAverage: until.reading.loadAverage}
	l.CPURatio, l.IOWaitRatio = cpuBetween(from.reading, until.reading)
	return l
}
