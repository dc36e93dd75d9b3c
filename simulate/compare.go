// Package simulate simulates clusters in which rules decide how jobs with SLOs run. Jobs arrive, a
// rule promises SLOs and chooses batch sizes and CPUs, and co-located jobs slow each other down.
// Afterwards every promise is compared with the true outcome.
//
//	s := simulate.NewScenario(simulate.DefaultWorld(), 1000, 0.95, 7)
//	outcomes, err := s.Play(ctx, simulate.NewRule(ctx, simulate.RuleRandom, 7, 0), nil)
//	score := simulate.ScoreOf("random", outcomes)
//
// A World describes nodes, families of jobs with their true laws, noise and arrivals. A
// Scenario is a World with all random numbers drawn. A Rule answers requests. It receives the
// events of a real log, as types of schemas with simulated times, and sees neither laws nor noise.
// A Rule that is a Watcher also warns of promises at risk. A warm-up history precedes the scored
// submissions, so that rules can learn from it.
//
// # Model
//
// A job runs on one node: first its start-up, then its epochs. The duration of an epoch is
//
//	law(batch size, CPUs) · contention(jobs and processes on the node) · noise(run) · noise(epoch)
//
// The rate of progress follows from this duration and changes whenever a neighbour starts or ends,
// also within an epoch. Neighbours do not change a start-up. An SLO applies to the time from
// submission to the end of the last epoch. A refused job is withdrawn and causes no load.
//
// # Order, determinism
//
// The same world, numbers and seed give identical results. Every rule plays in its own copy of the
// world, because its choices change the load of later jobs. Noise belongs to a job and an epoch
// number, not to the order of draws, so that all rules meet the same noise. A Scenario is immutable,
// and several goroutines may play it.
package simulate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"courier/schemas"
)

// MaxSubmissions bounds the memory of a comparison.
const MaxSubmissions = 100_000

// RuleComparisonOptions are the options of Compare.
type RuleComparisonOptions struct {
	Submissions int
	Confidence  float64 // confidence that every job requests, between 0 and 1
	Seed        uint64
	Refit       int      // finished jobs between two fits; 0: one fit, on the warm-up
	Rules       []string // names from Rules
	// Progress is called with the number of jobs that a rule has answered; may be nil.
	Progress func(rule string, done int)
}

// Validate returns an error that names the first invalid option.
func (o *RuleComparisonOptions) Validate() error {
	if o.Submissions < 1 || o.Submissions > MaxSubmissions {
		return fmt.Errorf("submissions is %d, want 1 to %d", o.Submissions, MaxSubmissions)
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", o.Confidence)
	}
	if o.Refit < 0 {
		return fmt.Errorf("refit is %d, want 0 or more", o.Refit)
	}
	for i, name := range o.Rules {
		if !slices.Contains(Rules(), name) {
			return fmt.Errorf("rule %q is not one of %s", name, strings.Join(Rules(), ", "))
		}
		if slices.Contains(o.Rules[:i], name) {
			return fmt.Errorf("rule %q is given twice", name)
		}
	}
	return nil
}

// RuleComparison is the outcome of Compare.
type RuleComparison struct {
	Submissions int               `json:"submissions"`
	Confidence  float64           `json:"confidence"`
	Seed        uint64            `json:"seed"`
	Rules       []SimulationScore `json:"rules"`
}

// Compare lets each rule answer the same submissions, each in its own copy of the world.
func Compare(ctx context.Context, w *World, o RuleComparisonOptions) (*RuleComparison, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	scenario := NewScenario(w, o.Submissions, o.Confidence, o.Seed)
	result := &RuleComparison{
		Submissions: o.Submissions,
		Confidence:  o.Confidence,
		Seed:        o.Seed,
	}
	for _, name := range o.Rules {
		progress := func(done int) {
			if o.Progress != nil {
				o.Progress(name, done)
			}
		}
		outcomes, err := scenario.Play(ctx, NewRule(ctx, name, o.Seed, o.Refit), progress)
		if err != nil {
			return nil, fmt.Errorf("simulate rule %s: %w", name, err)
		}
		result.Rules = append(result.Rules, ScoreOf(name, outcomes))
	}
	return result, nil
}

// WriteText writes the comparison as a table, with a tab behind each cell, and a legend.
func (c *RuleComparison) WriteText(out io.Writer) {
	fmt.Fprintf(out, "%d submissions, confidence %g, seed %d\n\n", c.Submissions, c.Confidence,
		c.Seed)
	fmt.Fprintln(out, "rule\taccepted\trefused\texplored\tkept\tinterval\twrong refusals\t"+
		"regret\tCPU hours\twarned\tfalse\t")
	for _, s := range c.Rules {
		interval := "-"
		if s.KeptLow != nil {
			interval = fmt.Sprintf("%.3f-%.3f", *s.KeptLow, *s.KeptHigh)
		}
		cells := []string{
			s.Rule,
			fmt.Sprint(s.Accepted),
			fmt.Sprint(s.Refused),
			fmt.Sprint(s.Explored),
			schemas.OptionalNumber(s.KeptRatio, "%.3f"),
			interval,
			fmt.Sprintf("%.3f", s.WrongRefusalRatio),
			schemas.OptionalNumber(s.AccuracyRegret, "%.4f"),
			fmt.Sprintf("%.1f", s.CPUSeconds/3600),
			schemas.OptionalNumber(s.WarnedRatio, "%.3f"),
			schemas.OptionalNumber(s.FalseWarningRatio, "%.3f"),
		}
		fmt.Fprintln(out, strings.Join(cells, "\t")+"\t")
	}
	fmt.Fprint(out, comparisonLegend)
}

// comparisonLegend explains the columns.
const comparisonLegend = `
accepted        jobs that were promised to meet their SLO, and ran as advised
refused         jobs that were refused because nothing meets the SLO, and were withdrawn
explored        jobs that ran without a promise
kept            ratio of the accepted jobs that met their SLO, start-up included
interval        95 % binomial interval (Wilson) of kept
wrong refusals  ratio of all submissions that were refused although a candidate would have met
                the SLO, given all later jobs
regret          mean difference in accuracy between the best such candidate and the accepted one
                (0.003 is 0.3 points)
CPU hours       processors times time, of all jobs that ran
warned          ratio of the broken promises with a first warning at least 0.2 of the SLO before
                its end
false           ratio of the promises with a warning that were kept
`
