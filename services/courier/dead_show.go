package main

import (
	"context"

	"courier/report"
)

type deadShow struct {
	natsFlags
	outputFlags
	Letter uint64 `arg:"" help:"Number of the letter, from courier dead list."`
	Raw    bool   `help:"Write only the original bytes."`
}

func (c *deadShow) Run(w *environment) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, deadTimeout)
	defer cancel()
	l, err := b.Letter(ctx, c.Letter)
	if err != nil {
		return err
	}
	switch {
	case c.Raw:
		_, err = w.stdout.Write(l.Data)
		return err
	case c.Output == "json":
		r := report.NewLetter(l)
		r.Copies = 0 // Show does not count copies.
		return indented(w.stdout, r)
	}
	return report.LetterText(w.stdout, l)
}
