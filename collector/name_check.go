package collector

import (
	"context"
	"fmt"
	"time"

	"courier/schemas"
)

// takenIntervals is the number of intervals after which another machine's node name is available.
const takenIntervals = 3

type nameCheck struct {
	number uint64          // of the last sample of this boot; 0: none
	last   *schemas.Sample // of this node name; nil: none
	err    error           // ErrNodeTaken
}

func (c *Collector) applyNameCheck(result nameCheck) error {
	c.number = max(c.number, result.number)
	if result.last != nil {
		c.fleet.Sample(result.last)
	}
	return result.err
}

// checkName reads the last stored sample of this node, and waits for NATS without a time limit. A
// recent sample with another boot ID is from another machine. The numbers of this boot continue after
// its last stored sample, because the number is part of a sample's identity.
func (c *Collector) checkName(ctx context.Context) nameCheck {
	r, found := c.bus.LastSamples(ctx, c.o.Node)[c.o.Node]
	if !found || ctx.Err() != nil {
		return nameCheck{}
	}
	last := r.Event.(*schemas.Sample)
	if last.BootID == c.bootID {
		return nameCheck{number: last.Number, last: last}
	}

	interval := time.Duration(last.IntervalSeconds * float64(time.Second))
	interval = max(c.o.Interval, interval)
	if age := time.Since(r.StoredAt); age < takenIntervals*interval {
		err := fmt.Errorf("node %s: boot ID %s sent a sample %s ago, this machine has boot ID %s; "+
			"use another --node: %w",
			c.o.Node, last.BootID, max(0, age).Round(time.Millisecond), c.bootID, ErrNodeTaken)
		return nameCheck{err: err}
	}
	return nameCheck{last: last}
}
