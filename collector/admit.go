package collector

import (
	"context"
	"fmt"
	"time"

	"courier/schemas"
)

// patienceForLog is how long the first sample waits for the event log to tell who
// has this node's name. Where NATS is away samples are taken all the same, and wait.
const patienceForLog = 2 * time.Second

// admission is what the event log tells of a node's name.
type admission struct {
	number uint64          // of the newest sample of this boot; 0: there is none
	last   *schemas.Sample // the newest of this node; nil: there is none
	err    error           // ErrNodeTaken
}

// wait takes the answer if it comes soon. If it does not, samples count on from the
// age of the boot in shortest intervals: that is more than any sample of this boot has
// been given, because none has come sooner after another.
func (c *Collector) wait(ctx context.Context) error {
	late := time.NewTimer(patienceForLog)
	defer late.Stop()
	select {
	case a := <-c.asked:
		return c.admit(a)
	case <-late.C:
		c.number = uint64(sinceBoot() / shortestInterval)
	case <-ctx.Done():
	}
	return nil
}

// admit takes the answer of ask.
func (c *Collector) admit(a admission) error {
	c.asked = nil
	c.number = max(c.number, a.number)
	if a.last != nil {
		c.fleet.Sample(a.last)
	}
	return a.err
}

// ask looks at the last stored sample of this node, however long that takes. A young one of another
// boot ID is another machine's; one of ours tells where to count on, because the
// number is part of a sample's identity, and how fast the node was measured before.
func (c *Collector) ask(ctx context.Context) admission {
	r, found := lastSamples(ctx, c.b, c.o.Node)[c.o.Node]
	if !found || ctx.Err() != nil {
		return admission{}
	}
	last := r.Event.(*schemas.Sample)
	if last.BootID == c.boot {
		return admission{number: last.Number, last: last}
	}
	interval := max(c.o.Interval, secondsOf(last.IntervalSeconds))
	if age := time.Since(r.StoredAt); age < 3*interval {
		return admission{err: fmt.Errorf("node %s: boot ID %s has sent a sample %s ago, ours is %s; give this one another --node: %w",
			c.o.Node, last.BootID, rounded(max(0, age)), c.boot, ErrNodeTaken)}
	}
	return admission{last: last}
}
