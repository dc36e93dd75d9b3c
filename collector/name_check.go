package collector

import (
	"context"
	"fmt"
	"time"

	"courier/schemas"
)

// nameCheckTimeout is how long the first sample waits for the name check. If NATS is unreachable,
// samples are taken after that, and wait for the check.
const nameCheckTimeout = 2 * time.Second

// takenIntervals is the number of intervals after which another machine's node name is available.
const takenIntervals = 3

type nameCheck struct {
	number uint64          // of the last sample of this boot; 0: none
	last   *schemas.Sample // of this node name; nil: none
	err    error           // ErrNodeTaken
}

// awaitNameCheck waits a short time for the name check. If that takes longer, numbers continue from
// the age of the boot divided by the shortest interval. That is above every number of this boot,
// because samples cannot be taken faster.
func (c *Collector) awaitNameCheck(ctx context.Context) error {
	timeout := time.NewTimer(nameCheckTimeout)
	defer timeout.Stop()
	select {
	case result := <-c.nameCheck:
		return c.applyNameCheck(result)
	case <-timeout.C:
		c.number = uint64(sinceBoot() / minInterval)
	case <-ctx.Done():
	}
	return nil
}

func (c *Collector) applyNameCheck(result nameCheck) error {
	c.nameCheck = nil
	c.number = max(c.number, result.number)
	if result.last != nil {
		c.fleet.Sample(result.last)
	}
	return result.err
}

// checkName reads the last stored sample of this node, and waits for NATS without a time limit. A
// recent sample with another boot ID is from another machine. A sample of this boot has the number
// from which to continue, because the number is part of a sample's identity.
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
