package main

import (
	"context"
	"io"
	"time"

	"courier/report"
)

type streamsCommand struct {
	natsFlags
	replicaFlags
	outputFlags
	Apply bool `help:"Create what is absent, change what differs where NATS can, and say what it cannot. No message is dropped."`
}

// streamsTimeout bounds all questions and changes of one call.
const streamsTimeout = 30 * time.Second

// Help is the rest of what --help says.
func (c *streamsCommand) Help() string {
	return "Compares every stream of the log, and the durables of the store, with what this program declares. What keeps more than is declared " +
		"(age, bytes, replicas) is the operator's own and stays. The exit status is 1 when something differs."
}

// Run shows the streams, after changing them where that is wanted.
func (c *streamsCommand) Run(w *world) error {
	b, err := c.connectReplicated(w, c.replicaFlags)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, streamsTimeout)
	defer cancel()
	states, err := b.Streams(ctx)
	if err != nil {
		return err
	}
	var done []string
	if c.Apply {
		before := states
		if states, err = b.ApplyStreams(ctx); err != nil {
			return err
		}
		done = report.ChangedStreams(before, states)
	}
	r := report.NewStreams(states, done, time.Now())
	err = c.print(w.stdout, r, func(out io.Writer) error { return r.WriteText(out, c.Apply) })
	if err == nil && !r.OK {
		return exitStatus(1)
	}
	return err
}
