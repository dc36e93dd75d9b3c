package main

import (
	"fmt"

	"courier/services"
	"courier/simulate/drift"
	"courier/simulate/reserve"
	"courier/simulate/resize"
	"courier/simulate/sharing"
	"courier/simulate/tuning"
)

// simulateCommand runs simulated clusters.
type simulateCommand struct {
	Elastic  simulateElastic  `cmd:"" help:"Play a trace of elastic jobs with deadlines, and compare policies by the ratio of kept deadlines."`
	CE       simulateCE       `cmd:"" name:"ce" help:"Reproduce the figures of CE-scaling, which plans the resources of tunings and trainings."`
	Flowcon  simulateFlowcon  `cmd:"" help:"Reproduce the figures of FlowCon, which gives CPU to jobs that learn fast, and of related systems."`
	Nearchus simulateNearchus `cmd:"" help:"Reproduce the figures of NEARCHUS, which resizes trainings by their bottlenecks."`
	SLO      simulateSLO      `cmd:"" name:"slo" help:"Compare policies that divide one node among trainings with deadlines, by kept deadlines."`
	Promises simulatePromises `cmd:"" help:"Compare rules that promise SLOs on the same submissions in a simulated cluster."`
	Drift    simulateDrift    `cmd:"" help:"Measure the drift detectors of method families: delay, cause, false alarms, SLO attainment."`
}

type simulateFlowcon struct{ outputFlags }

// Help returns the example of courier simulate flowcon.
func (c *simulateFlowcon) Help() string { return example("courier simulate flowcon --output json") }

func (c *simulateFlowcon) Run(w *environment) error {
	f := sharing.Reproduce()
	if err := reserve.Reproduce(w.ctx, f); err != nil {
		return err
	}
	return c.print(w.stdout, f, f.WriteText)
}

type simulateSLO struct{ outputFlags }

// Help returns the example of courier simulate slo.
func (c *simulateSLO) Help() string { return example("courier simulate slo --output json") }

func (c *simulateSLO) Run(w *environment) error {
	f := sharing.ReproduceSLO()
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

type simulateDrift struct {
	outputFlags
	Seed           uint64  `help:"Seed of all random numbers." default:"1"`
	Change         float64 `help:"Relative change of job times: 0.10 is 10 % longer, -0.10 is 10 % shorter." default:"0.10"`
	Noise          float64 `help:"Standard deviation of log(measured / predicted)." default:"0.05"`
	StationaryJobs int     `help:"Number of jobs without drift, in which false alarms are counted." default:"1000000"`
	Repetitions    int     `help:"Number of simulated drifts of each kind." default:"1000"`
	Nodes          int     `help:"Number of nodes." default:"4"`
	Models         int     `help:"Number of models." default:"2"`
	Confidence     float64 `help:"Confidence of the promises, between 0 and 1." default:"0.90"`
}

// Help returns the examples of courier simulate drift.
func (c *simulateDrift) Help() string {
	return `Example:
  courier simulate drift --change 0.30 --repetitions 100 --stationary-jobs 100000`
}

func (c *simulateDrift) Run(w *environment) error {
	r, err := drift.Run(w.ctx, drift.Options{
		Seed:           c.Seed,
		Change:         c.Change,
		Noise:          c.Noise,
		StationaryJobs: c.StationaryJobs,
		Repetitions:    c.Repetitions,
		Nodes:          c.Nodes,
		Models:         c.Models,
		Confidence:     c.Confidence,
	})
	if err != nil {
		return err
	}
	return c.print(w.stdout, r, r.WriteText)
}
