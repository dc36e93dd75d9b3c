package main

import (
	"courier/replay"
	"courier/services/local"
)

type replayCommand struct {
	natsFlags
	outputFlags
	Data          string  `help:"Data directory of the running courier all whose log is replayed." type:"path" placeholder:"DIR"`
	AsOfLastMonth bool    `help:"Only count the late jobs of the last month that would have been in time if Courier had chosen their batch size from the runs before them. Jobs with an SLO or with a time limit of Slurm count." name:"as-of-last-month"`
	Confidence    float64 `help:"Confidence that --as-of-last-month requests for every job, between 0 and 1." default:"${confidence}" placeholder:"RATIO"`
}

func (c *replayCommand) Run(w *environment) error {
	if err := checkConfidence(c.Confidence); c.AsOfLastMonth && err != nil {
		return err
	}
	l, err := c.read(w)
	if err != nil {
		return err
	}
	if c.AsOfLastMonth {
		r, err := l.LateJobs(w.ctx, c.Confidence)
		if err != nil {
			return err
		}
		return c.print(w, r, r.WriteText)
	}
	r, err := l.Verify(w.ctx)
	if err != nil {
		return err
	}
	return c.print(w, r, r.WriteText)
}

func (c *replayCommand) read(w *environment) (*replay.Log, error) {
	if c.Data != "" {
		e, err := local.ReadEndpoints(c.Data)
		if err != nil {
			return nil, err
		}
		return readServer(w, natsFlags{NATSURL: e.NATSURL})
	}
	return readServer(w, c.natsFlags)
}

func readServer(w *environment, n natsFlags) (*replay.Log, error) {
	b, err := n.connect(w)
	if err != nil {
		return nil, err
	}
	defer closeBus(b)
	return replay.ReadBus(w.ctx, b)
}

func checkConfidence(c float64) error {
	if !(c > 0 && c < 1) {
		return usagef("confidence is %g, want a number between 0 and 1", c)
	}
	return nil
}
