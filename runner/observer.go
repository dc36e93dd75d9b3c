package runner

import (
	"context"
	"runtime"
	"time"

	"courier/bus"
	"courier/schemas"
)

// NodeObserver measures the node on which a job runs.
type NodeObserver interface {
	// Hardware returns the cores and the CPU model of the node; unknown ones are zero.
	Hardware() schemas.Hardware

	// Load sets the node fields of an epoch event to the load since the previous call. The first
	// call sets only the fields that need no earlier reading.
	Load(e *schemas.Epoch)
}

// unobservedNode is the default NodeObserver.
type unobservedNode struct{}

func (unobservedNode) Hardware() schemas.Hardware {
	return schemas.Hardware{Cores: uint32(runtime.NumCPU())}
}

func (n unobservedNode) Load(e *schemas.Epoch) { e.NodeCores = n.Hardware().Cores }

// sampleTimeout limits the delay of a job's start for reading the samples of its nodes.
const sampleTimeout = time.Second

// readSamples reads the newest sample of each of the job's nodes.
func (j *job) readSamples(ctx context.Context, b *bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	for _, r := range b.LastSamples(ctx, j.o.Request.Nodes...) {
		j.fleet.Sample(r.Event.(*schemas.Sample))
	}
}

// hardware returns the hardware of the job's nodes: that of this node as measured, and otherwise
// that of the samples, unless they contradict the measurement.
func (j *job) hardware() []schemas.Hardware {
	nodes := j.result.Setting.Nodes
	measured := make([]schemas.Hardware, len(nodes))
	for i, name := range nodes {
		if name == j.o.Node {
			measured[i] = j.o.Observer.Hardware()
		}
	}
	return j.fleet.See(nodes, measured, 0)
}
