// Package drift measures in simulation how Courier reacts when jobs become slower or faster: after
// how many jobs drift is detected, which cause is named, how often an alarm is false, and which
// share of the promises is kept meanwhile.
//
// Run is deterministic: the same Options give the same Reaction on any machine and with any number of
// processors. It uses the trainer's drift detector and the advisor's decisions as they are; only
// the jobs and their times are simulated.
package drift

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Options describe the simulated cluster and the change.
type Options struct {
	Seed           uint64
	Change         float64 // relative change of job times: 0.10 is 10 % longer; above -1, not 0
	Noise          float64 // standard deviation of log(measured / predicted), 0.01 to 1
	StationaryJobs int     // jobs without drift, in which false alarms are counted
	Repetitions    int     // simulated drifts of each kind
	Nodes          int
	Models         int
	Confidence     float64 // of the promises, between 0 and 1
}

// Limits of Options.
const (
	maxChange         = 100
	maxStationaryJobs = 1_000_000_000
	maxRepetitions    = 100_000
	maxNodes          = 1000
)

// Validate returns an error that names the first invalid option.
func (o *Options) Validate() error {
	if !(o.Change > -1 && o.Change <= maxChange) || o.Change == 0 {
		return fmt.Errorf("change is %g, want a number above -1, at most %d, and not 0",
			o.Change, maxChange)
	}
	if !(o.Noise >= 0.01 && o.Noise <= 1) {
		return fmt.Errorf("noise is %g, want a number between 0.01 and 1", o.Noise)
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", o.Confidence)
	}
	for _, n := range []struct {
		name       string
		value, max int
	}{
		{"stationary-jobs", o.StationaryJobs, maxStationaryJobs},
		{"repetitions", o.Repetitions, maxRepetitions},
		{"nodes", o.Nodes, maxNodes},
		{"models", o.Models, maxNodes},
	} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("%s is %d, want 1 to %d", n.name, n.value, n.max)
		}
	}
	return nil
}

// Reaction is the outcome of Run. Medians and ratios without values are 0.
type Reaction struct {
	Change         float64 `json:"change"`
	Noise          float64 `json:"noise"`
	Seed           uint64  `json:"seed"`
	StationaryJobs int     `json:"stationary_jobs"`
	Repetitions    int     `json:"repetitions"`
	Detectors      int     `json:"detectors"` // number of concurrent detectors

	// Median number of jobs from the change to the alarm with all detectors: of all jobs when all
	// of them change, and of the jobs of a node when that node alone changes.
	MedianDelayJobs     float64 `json:"median_delay_jobs"`
	MedianDelayNodeJobs float64 `json:"median_delay_node_jobs"`

	// False alarms of one detector, and of all together.
	FalseAlarms    float64 `json:"false_alarms_per_100000_jobs"`
	FalseAlarmsAll float64 `json:"false_alarms_all_detectors_per_100000_jobs"`

	// Shares of the changes whose cause was named: the node, or the whole cluster.
	NamedNodeRatio    float64 `json:"named_node_ratio"`
	NamedClusterRatio float64 `json:"named_cluster_ratio"`

	// Shares of the promises that were kept among the last 50 jobs before the change, and among
	// jobs 1 to 20, 21 to 50, and 51 to 200 after it.
	Confidence      float64 `json:"confidence"`
	CoverageBefore  float64 `json:"coverage_before"`
	CoverageAtOnce  float64 `json:"coverage_at_once"`
	CoverageAfter20 float64 `json:"coverage_after_20_jobs"`
	CoverageAfter50 float64 `json:"coverage_after_50_jobs"`

	// UnpromisedRatio is the share of jobs 1 to 200 without a promise; they count as neither kept
	// nor broken.
	UnpromisedRatio float64 `json:"unpromised_ratio"`

	// Median of upper bound / measured time, of the 50 jobs before the change and of jobs 51 to
	// 200 after it.
	WidthBefore  float64 `json:"bound_over_median_before"`
	WidthAfter50 float64 `json:"bound_over_median_after_50_jobs"`
}

// Run simulates the change of the options and measures the reaction.
func Run(ctx context.Context, o Options) (*Reaction, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Reaction{
		Change:         o.Change,
		Noise:          o.Noise,
		Seed:           o.Seed,
		StationaryJobs: o.StationaryJobs,
		Repetitions:    o.Repetitions,
		Detectors:      1 + o.Nodes + o.Models,
		Confidence:     o.Confidence,
	}
	s := &simulation{Options: o}
	for _, measure := range []func(context.Context, *Reaction) error{
		s.falseAlarms,
		s.delays,
		s.coverage,
	} {
		if err := measure(ctx, r); err != nil {
			return nil, fmt.Errorf("simulate drift: %w", err)
		}
	}
	return r, nil
}

// WriteText writes the result as text.
func (r *Reaction) WriteText(out io.Writer) error {
	_, err := fmt.Fprintf(out, `jobs take %+.0f %%, noise %.0f %%, seed %d, %d repetitions, %d detectors

detected after          %6.1f jobs if all jobs change (median)
                        %6.1f jobs of the node if one node changes
cause named             %6.3f of the slow nodes
                        %6.3f of the slow clusters
false alarms            %6.2f per 100000 jobs and detector, among %d jobs
                        %6.2f per 100000 jobs with all detectors
promises of %.2f kept   %6.3f before the change
                        %6.3f of jobs 1 to 20 after the change
                        %6.3f of jobs 21 to 50
                        %6.3f of jobs 51 to 200
not promised            %6.3f of jobs 1 to 200
bound / measured        %6.2f before, %.2f of jobs 51 to 200 (median)
`, 100*r.Change, 100*r.Noise, r.Seed, r.Repetitions, r.Detectors,
		r.MedianDelayJobs, r.MedianDelayNodeJobs,
		r.NamedNodeRatio, r.NamedClusterRatio,
		r.FalseAlarms, r.StationaryJobs, r.FalseAlarmsAll,
		r.Confidence, r.CoverageBefore, r.CoverageAtOnce, r.CoverageAfter20, r.CoverageAfter50,
		r.UnpromisedRatio, r.WidthBefore, r.WidthAfter50)
	return err
}

// simulation is one run with its options.
type simulation struct{ Options }

// logChange is the change as a logarithm.
func (s *simulation) logChange() float64 { return math.Log1p(s.Change) }

// Streams of random numbers: one for each part, and in it one for each shard or repetition.
const (
	streamDetector = 1 + iota
	streamWatch
	streamCluster
	streamNode
	streamExamples
	streamPromises
)

func (s *simulation) random(stream, number int) *rand.Rand {
	return rand.New(rand.NewPCG(s.Seed, uint64(stream)<<32|uint64(number)))
}

// inParallel calls run for each number below n, on all processors.
func inParallel(
	ctx context.Context, n int, run func(ctx context.Context, number int) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return run(ctx, i)
		})
	}
	return g.Wait()
}

// median returns 0 without values, because JSON has no NaN.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
