package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"courier/simulate"
)

// simulateCommand plays clusters that exist on paper only.
type simulateCommand struct {
	SLO   simulateSLO   `cmd:"" name:"slo" help:"Let rules promise SLOs to the same submissions in a simulated cluster, and compare what they kept."`
	Drift simulateDrift `cmd:"" help:"Let jobs take longer from one moment on: how soon that is noticed, what is named, how often it is a false alarm, and how promises hold meanwhile."`
}

// simulateFlags are those of everything that is simulated.
type simulateFlags struct {
	outputFlags
	World string `help:"World to play, a JSON file (default: the built-in one)." type:"path" placeholder:"FILE"`
	Seed  uint64 `help:"Of arrivals, SLOs, noise, the warm-up and the fits." default:"1"`
}

func (f *simulateFlags) world() (*simulate.World, error) {
	if f.World == "" {
		return simulate.DefaultWorld(), nil
	}
	data, err := os.ReadFile(f.World)
	if err != nil {
		return nil, err
	}
	w, err := simulate.ParseWorld(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", f.World, plain(err))
	}
	return w, nil
}

type simulateSLO struct {
	simulateFlags
	Submissions int      `help:"How many jobs are submitted." default:"1000"`
	Confidence  float64  `help:"Of meeting the SLO that every job asks for, between 0 and 1." default:"0.95"`
	Rules       []string `help:"Who decides: ${rules}; informed, too: what is possible with every probability known." default:"${rules}"`
	Refit       int      `help:"Fit the regressors anew after that many finished jobs; 0: only once, on the warm-up." default:"0"`
}

// maxSubmissions bounds the memory of a simulation.
const maxSubmissions = 100_000

// simulation is what courier simulate slo --output json prints.
type simulation struct {
	Submissions int              `json:"submissions"`
	Confidence  float64          `json:"confidence"`
	Seed        uint64           `json:"seed"`
	Rules       []simulate.Score `json:"rules"`
}

func (c *simulateSLO) Run(w *world) error {
	if err := c.check(); err != nil {
		return err
	}
	model, err := c.world()
	if err != nil {
		return err
	}
	scenario := simulate.NewScenario(model, c.Submissions, c.Confidence, c.Seed)
	result := simulation{Submissions: c.Submissions, Confidence: c.Confidence, Seed: c.Seed}
	bar := newBar(w.stderr, len(c.Rules)*c.Submissions)
	for i, name := range c.Rules {
		progress := func(done int) {
			if step := max(1, c.Submissions/50); bar.terminal && (done == 1 || done%step == 0) {
				bar.draw(i*c.Submissions+done, name)
			}
		}
		outcomes, err := scenario.Play(w.ctx, simulatedRules[name](w.ctx, c), progress)
		if err != nil {
			return fmt.Errorf("simulate rule %s: %w", name, err)
		}
		result.Rules = append(result.Rules, simulate.ScoreOf(name, outcomes))
	}
	if bar.terminal {
		bar.draw(bar.total, "done")
		bar.end()
	}
	return c.print(w.stdout, result)
}

func (c *simulateSLO) check() error {
	if c.Submissions < 1 || c.Submissions > maxSubmissions {
		return fmt.Errorf("submissions is %d, want 1 to %d", c.Submissions, maxSubmissions)
	}
	if !(c.Confidence > 0 && c.Confidence < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", c.Confidence)
	}
	if c.Refit < 0 {
		return fmt.Errorf("refit is %d, want 0 or more", c.Refit)
	}
	for i, name := range c.Rules {
		if simulatedRules[name] == nil {
			return fmt.Errorf("rule %q is not one of %s", name, strings.Join(knownRules, ", "))
		}
		if slices.Contains(c.Rules[:i], name) {
			return fmt.Errorf("rule %q is given twice", name)
		}
	}
	return nil
}

func (c *simulateSLO) print(out io.Writer, result simulation) error {
	if c.Output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	fmt.Fprintf(out, "%d submissions, confidence %g, seed %d\n\n", result.Submissions, result.Confidence, result.Seed)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rule\taccepted\trefused\texplored\tkept\tinterval\twrong refusals\tat once\tregret\tat once\tCPU hours\twarned\tfalse\t")
	for _, s := range result.Rules {
		interval := "-"
		if s.KeptLow != nil {
			interval = fmt.Sprintf("%.3f-%.3f", *s.KeptLow, *s.KeptHigh)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\t%.3f\t%.3f\t%s\t%s\t%.1f\t%s\t%s\t\n", s.Rule, s.Accepted, s.Refused, s.Explored, figure(s.KeptRatio, "%.3f"), interval,
			s.WrongRefusalRatio, s.WrongRefusalAtOnceRatio, figure(s.AccuracyRegret, "%.4f"), figure(s.AccuracyRegretAtOnce, "%.4f"), s.CPUSeconds/3600,
			figure(s.WarnedRatio, "%.3f"), figure(s.FalseWarningRatio, "%.3f"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, simulateLegend)
	return err
}

// simulateLegend explains each column.
const simulateLegend = `
accepted        promised to meet the SLO, and run as chosen
refused         told that nothing meets the SLO, and withdrawn
explored        run without a promise
kept            share of the accepted that met their SLO, start-up included
interval        95 % binomial interval (Wilson) of kept
wrong refusals  share of all submissions that were refused though some candidate would have met the SLO, beside all who came later
regret          how much less accurate than the best such candidate the accepted are, on average (0.003 is 0.3 points)
at once         the same, had nobody come later: a world in which no job ran
CPU hours       processors times time, of all that ran
warned          share of the broken promises whose first warning came with at least 0.2 of the SLO left
false           share of the promises that were warned of and kept
`
