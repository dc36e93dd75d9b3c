package elastic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/policy"
	"courier/policy/deadline"
	"courier/policy/edf"
	"courier/policy/elasticflow"
	"courier/policy/jct"
)

// Options are the options of Run and Compare.
type Options struct {
	Cluster GPUCluster
	// AllowBatchChange lets policies choose another profiled batch size for the same samples.
	AllowBatchChange bool
	// RateError is the standard deviation of log(true / known rate). Zero: known rates are exact.
	RateError float64
	// Predicted hides the rates: policies know predictions from the epochs of earlier jobs.
	Predicted bool
	Seed      uint64 // of the errors of the rates
	// Progress is called with the number of submitted jobs; may be nil.
	Progress func(policy string, submitted int)
}

// constructors are the policies by name, the default first. Some of them keep the batch size of a
// job, whatever Options.AllowBatchChange is.
var constructors = []struct {
	name      string
	keepBatch bool
	create    func() policy.Policy
}{
	{"deadline", false, func() policy.Policy { return deadline.New(deadline.Options{}) }},
	{"edf", true, func() policy.Policy { return edf.New() }},
	{"elasticflow", true, func() policy.Policy { return elasticflow.New() }},
	{"elasticflow-per-arrival", true, func() policy.Policy { return elasticflow.NewPerArrival() }},
	{"jct", false, func() policy.Policy { return jct.New() }},
}

// Policies returns the names of the policies, the default first.
func Policies() []string {
	var names []string
	for _, c := range constructors {
		names = append(names, c.name)
	}
	return names
}

// NewPolicy returns the policy of a name.
func NewPolicy(name string) (policy.Policy, error) {
	for _, c := range constructors {
		if c.name == name {
			return c.create(), nil
		}
	}
	return nil, fmt.Errorf("policy %q is not one of %s", name, strings.Join(Policies(), ", "))
}

// knownRates names what policies know about rates.
func (o *Options) knownRates() string {
	switch {
	case o.Predicted:
		return "predicted"
	case o.RateError > 0:
		return "perturbed"
	}
	return "exact"
}

// Validate returns an error that names the first invalid option.
func (o *Options) Validate() error {
	if !(o.RateError >= 0 && o.RateError <= 1) {
		return fmt.Errorf("--rate-error is %g, want 0 to 1", o.RateError)
	}
	if o.Predicted && o.RateError > 0 {
		return errors.New("--predicted and --rate-error are given together: rates are either predicted " +
			"or have a given error")
	}
	return o.Cluster.Validate()
}

// Run plays a trace with one policy.
func Run(ctx context.Context, trace []TraceJob, rates Throughputs, name string, o Options) (*TraceScore,
	error) {
	p, err := NewPolicy(name)
	if err != nil {
		return nil, err
	}
	return Play(ctx, trace, rates, name, p, o)
}

// Play plays a trace with a policy that need not be one of Policies; the name is that of the result.
func Play(ctx context.Context, trace []TraceJob, rates Throughputs, name string, p policy.Policy,
	o Options) (*TraceScore, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	w, err := newWorld(trace, rates, o)
	if err != nil {
		return nil, err
	}

	var times []time.Duration
	decide := func(v *policy.ClusterView, now time.Time) policy.MoveDecision {
		start := time.Now()
		d := p.Plan(v, now)
		times = append(times, time.Since(start))
		return d
	}
	progress := func(submitted int) {
		if o.Progress != nil {
			o.Progress(name, submitted)
		}
	}
	if err := w.play(ctx, decide, progress); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}

	schedule := w.schedule()
	verified, err := Verify(trace, rates, o.Cluster, schedule, o.AllowBatchChange)
	if err != nil {
		return nil, fmt.Errorf("policy %s: invalid schedule: %w", name, err)
	}
	return newResult(name, w, verified, schedule, times), nil
}

func newWorld(trace []TraceJob, rates Throughputs, o Options) (*world, error) {
	w := &world{cluster: o.Cluster, nodes: o.Cluster.nodes(), rates: rates, known: o.knowledge()}
	if len(trace) == 0 {
		return nil, errNoJobs
	}
	for _, t := range trace {
		options := optionsOf(t, rates[t.Model], o.AllowBatchChange)
		if len(options) == 0 {
			return nil, fmt.Errorf("job %q: %w", t.ID, rates.missing(t.Model, t.BatchSize))
		}
		w.jobs = append(w.jobs, &simulatedJob{TraceJob: t, options: options})
	}
	return w, nil
}

// knowledge returns what policies know about rates.
func (o *Options) knowledge() knowledge {
	switch {
	case o.Predicted:
		return newLearnedKnowledge()
	case o.RateError > 0:
		return &perturbedKnowledge{seed: o.Seed, sigma: o.RateError}
	}
	return exactKnowledge{}
}

// optionsOf returns the batch sizes of a job, its own first.
func optionsOf(t TraceJob, curves map[int]policy.Curve, allowBatchChange bool) []gpuOption {
	if len(curves[t.BatchSize]) == 0 {
		return nil
	}
	options := []gpuOption{{t.BatchSize, t.Iterations, curves[t.BatchSize]}}
	if !allowBatchChange {
		return options
	}
	var others []int
	for size, curve := range curves {
		if size != t.BatchSize && len(curve) > 0 {
			others = append(others, size)
		}
	}
	slices.Sort(others)
	for _, size := range others {
		iterations := t.Iterations * float64(t.BatchSize) / float64(size)
		options = append(options, gpuOption{size, iterations, curves[size]})
	}
	return options
}

func (w *world) schedule() []Stretch {
	var schedule []Stretch
	for _, j := range w.jobs {
		schedule = append(schedule, j.stretches...)
	}
	sortSchedule(schedule)
	return schedule
}
