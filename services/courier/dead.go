package main

import (
	"context"
	"strings"
	"time"

	"courier/bus"
	"courier/report"
	"courier/schemas"
)

type deadCommand struct {
	List   deadList   `cmd:"" help:"List dead letters, newest first."`
	Show   deadShow   `cmd:"" help:"Show one dead letter with its original bytes."`
	Replay deadReplay `cmd:"" help:"Publish the original bytes of dead letters again, once they can be decoded."`
}

// deadTimeout bounds reading the stream DEAD.
const deadTimeout = time.Minute

// letterFlags select dead letters.
type letterFlags struct {
	Stream string        `help:"Only letters of this stream, such as NODE." placeholder:"STREAM"`
	Since  time.Duration `help:"Only letters of this most recent period, such as 24h." placeholder:"TIME"`
	Reason string        `help:"Only letters with this text in their reason." placeholder:"TEXT"`
}

// query validates the flags.
func (f *letterFlags) query(now time.Time) (bus.LetterQuery, error) {
	q := bus.LetterQuery{Stream: strings.ToUpper(f.Stream), Reason: f.Reason}
	if f.Since < 0 {
		return q, schemas.Invalid("since", "%s is negative; want a period such as 24h", f.Since)
	}
	if f.Since > 0 {
		q.Since = now.Add(-f.Since)
	}
	var names []string
	for _, s := range schemas.Streams() {
		if names = append(names, s.Name); q.Stream == s.Name {
			return q, nil
		}
	}
	if q.Stream != "" {
		return q, schemas.Invalid("stream", "%q is not one of %v", f.Stream, names)
	}
	return q, nil
}

type deadList struct {
	natsFlags
	outputFlags
	letterFlags
	Limit int `help:"Maximum number of letters." default:"20"`
}

func (c *deadList) Run(w *environment) error {
	q, err := c.query(time.Now())
	if err != nil {
		return err
	}
	if q.Limit = c.Limit; q.Limit < 1 {
		return schemas.Invalid("limit", "%d is not 1 or more", c.Limit)
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, deadTimeout)
	defer cancel()
	letters, total, err := b.Letters(ctx, q)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		list := report.LetterList{Letters: []report.DeadLetter{}, Total: total}
		for i := range letters {
			list.Letters = append(list.Letters, report.NewLetter(&letters[i]))
		}
		return indented(w.stdout, list)
	}
	return report.Letters(w.stdout, letters, total)
}
