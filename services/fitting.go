package services

import (
	"io"

	"courier/schemas"
)

// FittingBars draws a bar for the current fit.
type FittingBars struct {
	Out      io.Writer
	Terminal bool

	target string
	bar    *ProgressBar // nil before the first fit
}

// Handle draws the progress of a fit and ignores other events.
func (p *FittingBars) Handle(e schemas.Event) {
	f, ok := e.(*schemas.Fitting)
	if !ok || f.Planned == 0 {
		return
	}
	if p.bar == nil || p.target != f.Target || p.bar.Total != int(f.Planned) {
		p.End()
		p.target, p.bar = f.Target, NewProgressBar(p.Out, int(f.Planned))
		p.bar.Terminal = p.Terminal
	}
	p.bar.Draw(int(min(f.Done, f.Planned)), "parts of "+f.Target+", "+f.Reason)
}

// End keeps the last bar on the terminal.
func (p *FittingBars) End() {
	if p.bar != nil {
		p.bar.End()
		p.bar = nil
	}
}
