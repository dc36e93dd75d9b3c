package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// simulateDrift is courier simulate drift.
type simulateDrift struct {
	outputFlags
	Seed           uint64  `help:"Of all that is random." default:"1"`
	Change         float64 `help:"By how much jobs take longer: 0.10 is 10 % longer, -0.10 as much shorter." default:"0.10"`
	Noise          float64 `help:"Standard deviation of log(measured / predicted)." default:"0.05"`
	StationaryJobs int     `help:"Jobs without drift, in which false alarms are counted." default:"1000000"`
	Repetitions    int     `help:"How often a drift is played, of each kind." default:"1000"`
	Nodes          int     `help:"Of the cluster." default:"4"`
	Models         int     `help:"That are trained." default:"2"`
	Confidence     float64 `help:"Of the promises, between 0 and 1." default:"0.90"`
}

// driftResult is what courier simulate drift --output json prints.
type driftResult struct {
	Change         float64 `json:"change"`
	Noise          float64 `json:"noise"`
	Seed           uint64  `json:"seed"`
	StationaryJobs int     `json:"stationary_jobs"`
	Repetitions    int     `json:"repetitions"`
	Detectors      int     `json:"detectors"` // that are on beside each other

	MedianDelayJobs     float64 `json:"median_delay_jobs"`      // finished after all jobs changed, up to the alarm; all detectors on
	MedianDelayNodeJobs float64 `json:"median_delay_node_jobs"` // finished on a node after that node alone changed

	FalseAlarms    float64 `json:"false_alarms_per_100000_jobs"`               // of one detector
	FalseAlarmsAll float64 `json:"false_alarms_all_detectors_per_100000_jobs"` // of all together

	NamedNodeRatio    float64 `json:"named_node_ratio"`    // single-node changes whose node was named
	NamedClusterRatio float64 `json:"named_cluster_ratio"` // changes of all jobs that were named so

	Confidence      float64 `json:"confidence"`
	CoverageBefore  float64 `json:"coverage_before"`          // promises kept among the 50 jobs before the change
	CoverageAtOnce  float64 `json:"coverage_at_once"`         // among jobs 1 to 20 after it
	CoverageAfter20 float64 `json:"coverage_after_20_jobs"`   // among jobs 21 to 50
	CoverageAfter50 float64 `json:"coverage_after_50_jobs"`   // among jobs 51 to 200
	UnpromisedRatio float64 `json:"unpromised_ratio"`         // jobs 1 to 200 for which nothing was promised; they count as neither kept nor broken
	WidthBefore     float64 `json:"bound_over_median_before"` // median of the bound / the measured time, of the 50 jobs before the change
	WidthAfter50    float64 `json:"bound_over_median_after_50_jobs"`
}

const (
	mostStationaryJobs = 1_000_000_000
	mostRepetitions    = 100_000
	mostDriftNodes     = 1000
)

func (c *simulateDrift) check() error {
	if !(c.Change > -1 && c.Change <= 100) || c.Change == 0 {
		return fmt.Errorf("change is %g, want a number above -1, at most 100, and not 0", c.Change)
	}
	if !(c.Noise >= 0.01 && c.Noise <= 1) {
		return fmt.Errorf("noise is %g, want a number between 0.01 and 1", c.Noise)
	}
	if !(c.Confidence > 0 && c.Confidence < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", c.Confidence)
	}
	for _, n := range []struct {
		name        string
		value, most int
	}{{"stationary-jobs", c.StationaryJobs, mostStationaryJobs}, {"repetitions", c.Repetitions, mostRepetitions}, {"nodes", c.Nodes, mostDriftNodes}, {"models", c.Models, mostDriftNodes}} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("%s is %d, want 1 to %d", n.name, n.value, n.most)
		}
	}
	return nil
}

func (c *simulateDrift) Run(w *world) error {
	if err := c.check(); err != nil {
		return err
	}
	r := driftResult{Change: c.Change, Noise: c.Noise, Seed: c.Seed, StationaryJobs: c.StationaryJobs, Repetitions: c.Repetitions, Detectors: 1 + c.Nodes + c.Models, Confidence: c.Confidence}
	for _, part := range []func(*world, *driftResult) error{c.falseAlarms, c.delays, c.coverage} {
		if err := part(w, &r); err != nil {
			return fmt.Errorf("simulate drift: %w", err)
		}
	}
	return c.print(w.stdout, r)
}

func (c *simulateDrift) print(out io.Writer, r driftResult) error {
	if c.Output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	_, err := fmt.Fprintf(out, `jobs take %+.0f %%, noise %.0f %%, seed %d, %d repetitions, %d detectors

noticed after           %6.1f jobs, if all jobs change (median)
                        %6.1f jobs of the node, if one node changes
named rightly           %6.3f of the slow nodes
                        %6.3f of the slow clusters
false alarms            %6.2f in 100000 jobs and detector, of %d jobs
                        %6.2f in 100000 jobs with all detectors on
promises of %.2f kept   %6.3f before
                        %6.3f of jobs 1 to 20 after the change
                        %6.3f of jobs 21 to 50
                        %6.3f of jobs 51 to 200
not promised            %6.3f of jobs 1 to 200
bound / measured        %6.2f before, %.2f of jobs 51 to 200 (median)
`, 100*r.Change, 100*r.Noise, r.Seed, r.Repetitions, r.Detectors, r.MedianDelayJobs, r.MedianDelayNodeJobs, r.NamedNodeRatio, r.NamedClusterRatio,
		r.FalseAlarms, r.StationaryJobs, r.FalseAlarmsAll, r.Confidence, r.CoverageBefore, r.CoverageAtOnce, r.CoverageAfter20, r.CoverageAfter50,
		r.UnpromisedRatio, r.WidthBefore, r.WidthAfter50)
	return err
}

// middle is the median; NaN, which JSON cannot hold, becomes 0.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// shift is the change as a logarithm.
func (c *simulateDrift) shift() float64 { return math.Log1p(c.Change) }
