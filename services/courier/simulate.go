package main

import (
	"context"
	"fmt"
	"io"

	"courier/services"
	"courier/simulate/resize"
	"courier/simulate/sharing"
	"courier/simulate/tuning"
)

// simulateCommand runs simulated clusters.
type simulateCommand struct {
	Elastic  simulateElastic  `cmd:"" help:"Play a trace of elastic jobs with deadlines, and compare policies by the ratio of kept deadlines."`
	Figures  simulateFigures  `cmd:"" help:"Reproduce the figures of a published system: CE-scaling, FlowCon or NEARCHUS."`
	Promises simulatePromises `cmd:"" help:"Compare rules that promise SLOs on the same submissions in a simulated cluster."`
}

// simulateFigures reproduces the figures of a publication.
type simulateFigures struct {
	outputFlags
	System string `arg:"" help:"ce: CE-scaling plans the resources of tunings and trainings; flowcon: FlowCon divides CPU among trainings by the fall of their losses; nearchus: NEARCHUS resizes trainings by their bottlenecks." enum:"ce,flowcon,nearchus"`
	Seeds  int    `help:"Number of simulations of each variant of nearchus." default:"20" placeholder:"N"`
}

// Help returns the examples of courier simulate figures.
func (c *simulateFigures) Help() string {
	return example("courier simulate figures flowcon",
		"courier simulate figures nearchus --seeds 1 --output json")
}

// figures are compared with those of the publication.
type figures interface{ WriteText(out io.Writer) error }

func (c *simulateFigures) Run(w *environment) error {
	if c.Seeds < 1 || c.Seeds > 1000 {
		return fmt.Errorf("--seeds is %d, want 1 to 1000", c.Seeds)
	}
	f, err := c.reproduce(w.ctx, w.stderr)
	if err != nil {
		return err
	}
	return c.print(w.stdout, f, f.WriteText)
}

// reproduce computes the figures. Only those of nearchus take long enough for a progress bar.
func (c *simulateFigures) reproduce(ctx context.Context, progress io.Writer) (figures, error) {
	switch c.System {
	case "ce":
		return tuning.ReproduceAll()
	case "flowcon":
		return sharing.Reproduce(), nil
	}
	bar := services.NewProgressBar(progress, 0)
	f, err := resize.Reproduce(ctx, resize.Options{Seeds: c.Seeds, Progress: func(done, total int) {
		if bar.Total = total; bar.Terminal {
			bar.Draw(done, "simulations")
		}
	}})
	if err == nil && bar.Terminal {
		bar.End()
	}
	return f, err
}
