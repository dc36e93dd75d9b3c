package main

import (
	"fmt"
	"os"

	"courier/services"
	"courier/simulate"
)

type simulatePromises struct {
	outputFlags
	World       string   `help:"World to simulate, a JSON file (default: the built-in one)." type:"path" placeholder:"FILE"`
	Seed        uint64   `help:"Seed of arrivals, SLOs, noise, the warm-up and the fits." default:"1"`
	Submissions int      `help:"Number of submitted jobs." default:"1000"`
	Confidence  float64  `help:"Confidence that every job requests, between 0 and 1." default:"0.95"`
	Rules       []string `help:"Rules to compare: ${rules}; also informed, which knows the true probabilities." default:"${rules}"`
	Refit       int      `help:"Fit the regressors again after this many finished jobs; 0: only once, on the warm-up." default:"0"`
}

// Help returns the examples of courier simulate promises.
func (c *simulatePromises) Help() string {
	return `Example:
  courier simulate promises --submissions 200 --rules courier,paper,random`
}

func (c *simulatePromises) Run(w *environment) error {
	o := simulate.RuleComparisonOptions{
		Submissions: c.Submissions,
		Confidence:  c.Confidence,
		Seed:        c.Seed,
		Refit:       c.Refit,
		Rules:       c.Rules,
	}
	if err := o.Validate(); err != nil {
		return err
	}
	simulated, err := c.world()
	if err != nil {
		return err
	}

	bar := services.NewProgressBar(w.stderr, len(c.Rules)*c.Submissions)
	step, before, last := max(1, c.Submissions/50), 0, ""
	o.Progress = func(rule string, done int) {
		if last != "" && rule != last {
			before += c.Submissions
		}
		last = rule
		if bar.Terminal && (done == 1 || done%step == 0) {
			bar.Draw(before+done, rule)
		}
	}
	result, err := simulate.Compare(w.ctx, simulated, o)
	if err != nil {
		return err
	}
	if bar.Terminal {
		bar.Draw(bar.Total, "done")
		bar.End()
	}
	return c.print(w.stdout, result, result.WriteText)
}

func (c *simulatePromises) world() (*simulate.World, error) {
	if c.World == "" {
		return simulate.DefaultWorld(), nil
	}
	data, err := os.ReadFile(c.World)
	if err != nil {
		return nil, err
	}
	w, err := simulate.ParseWorld(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", c.World, plain(err))
	}
	return w, nil
}
