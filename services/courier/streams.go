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
	Apply bool `help:"Create absent streams, change configuration that differs, and report what NATS cannot change. No message is deleted."`
}

// streamsTimeout bounds all requests and changes of one call.
const streamsTimeout = 30 * time.Second

// Help returns the end of the help text.
func (c *streamsCommand) Help() string {
	return `Compares every stream of the log, and the durable consumers of the store, with their declaration in
this program. Higher limits (age, bytes, replicas) that an operator has set are kept. The exit
status is 1 if anything differs.

Examples:
  courier streams
  courier streams --apply --nats-replicas 3`
}

func (c *streamsCommand) Run(w *environment) error {
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
