package main

import (
	"fmt"

	"courier/services"
	"courier/simulate/resize"
	"courier/simulate/sharing"
	"courier/simulate/tuning"
)

// simulateCommand runs simulated clusters.
type simulateCommand struct {
	Elastic  simulateElastic  `cmd:"" help:"Play a trace of elastic jobs with deadlines, and compare policies by the ratio of kept deadlines."`
	CE       simulateCE       `cmd:"" name:"ce" help:"Reproduce the figures of CE-scaling, which plans the resources of tunings and trainings."`
	Flowcon  simulateFlowcon  `cmd:"" help:"Reproduce the figures of FlowCon, which divides CPU among trainings by the fall of their losses."`
	Nearchus simulateNearchus `cmd:"" help:"Reproduce the figures of NEARCHUS, which resizes trainings by their bottlenecks."`
	Promises simulatePromises `cmd:"" help:"Compare rules that promise SLOs on the same submissions in a simulated cluster."`
}

type simulateFlowcon struct{ outputFlags }

// Help returns the example of courier simulate flowcon.
func (c *simulateFlowcon) Help() string { return example("courier simulate flowcon --output json") }

func (c *simulateFlowcon) Run(w *environment) error {
	f := sharing.Reproduce()
	return c.print(w.stdout, f, f.WriteText)
}

type simulateCE struct{ outputFlags }

// Help returns the example of courier simulate ce.
func (c *simulateCE) Help() string { return example("courier simulate ce --output json") }

func (c *simulateCE) Run(w *environment) error {
	f, err := tuning.ReproduceAll()
	if err != nil {
		return err
	}
	return c.print(w.stdout, f, f.WriteText)
}

type simulateNearchus struct {
	outputFlags
	Seeds int `help:"Number of simulations of each variant." default:"20" placeholder:"N"`
}

// Help returns the example of courier simulate nearchus.
func (c *simulateNearchus) Help() string {
	return example("courier simulate nearchus --seeds 1 --output json")
}

func (c *simulateNearchus) Run(w *environment) error {
	if c.Seeds < 1 || c.Seeds > 1000 {
		return fmt.Errorf("--seeds is %d, want 1 to 1000", c.Seeds)
	}
	bar := services.NewProgressBar(w.stderr, 0)
	f, err := resize.Reproduce(w.ctx, resize.Options{Seeds: c.Seeds, Progress: func(done, total int) {
		if bar.Total = total; bar.Terminal {
			bar.Draw(done, "simulations")
		}
	}})
	if err != nil {
		return err
	}
	if bar.Terminal {
		bar.End()
	}
	return c.print(w.stdout, f, f.WriteText)
}
