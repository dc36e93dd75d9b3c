package main

import (
	"context"

	"courier/report"
)

type deadShow struct {
	natsFlags
	outputFlags
	Letter uint64 `arg:"" help:"Of the letter, as courier dead list shows it."`
	Raw    bool   `help:"Write the original bytes and nothing else, as they are."`
}

// Run reads one letter.
func (c *deadShow) Run(w *world) error {
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
		r.Copies = 0 // not counted
		return indented(w.stdout, r)
	}
	return report.LetterText(w.stdout, l)
}
