// Package elastic simulates elastic training jobs with deadlines on a cluster of GPUs, and compares
// policies by the ratio of kept deadlines.
//
// The rules are strict. A job is revealed at its submission. A number of GPUs that starts or changes
// makes a moment; two moments are at least a slot apart, and running jobs pause at a moment. A job
// is kept if it completes all iterations by its deadline, and the ratio counts all jobs of the
// trace, refused ones included. The format of traces and of throughput tables is the one of
// ElasticFlow (Gu et al., ASPLOS 2023).
//
// Compare plays a trace with several policies, Run with one. A second implementation of the rules, which
// reads only the schedule, confirms the figures in the tests. Results depend on the inputs alone, except
// for the measured decision times.
package elastic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"courier/policy"
	"courier/policy/deadline"
	"courier/policy/elasticflow"
)

// Options are the options of Run and Compare.
type Options struct {
	GPUs   int
	Slot   time.Duration // minimum time between two moments
	Charge policy.Charge
	// AllowBatchChange lets policies choose another profiled batch size for the same samples.
	AllowBatchChange bool
	// Progress is called with the number of submitted jobs; may be nil.
	Progress func(policy string, submitted int)
}

// constructors are the policies by name, the default first. Some of them keep the batch size of a
// job, whatever Options.AllowBatchChange is.
var constructors = []struct {
	name      string
	keepBatch bool
	policy    policy.Policy
}{
	{"deadline", false, deadline.ForCluster()},
	{"edf", true, policy.EDF()},
	{"elasticflow", true, elasticflow.Policy{}},
	{"jct", false, policy.JCT()},
}

// Policies returns the names of the policies, the default first.
func Policies() (names []string) {
	for _, c := range constructors {
		names = append(names, c.name)
	}
	return names
}

// CheckPolicies returns an error for an unknown, an empty or a repeated name, and for no name.
func CheckPolicies(names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("no policy is given: want one of %s", strings.Join(Policies(), ", "))
	}
	for i, name := range names {
		if !slices.Contains(Policies(), name) {
			return fmt.Errorf("policy %q is not one of %s", name, strings.Join(Policies(), ", "))
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("policy %q is given twice", name)
		}
	}
	return nil
}

// Validate returns an error that names the first invalid option.
func (o *Options) Validate() error {
	switch {
	case o.GPUs < 1 || o.GPUs > 1<<20:
		return fmt.Errorf("--gpus is %d, want 1 to %d", o.GPUs, 1<<20)
	case o.Slot < 0:
		return fmt.Errorf("--slot is %s, want 0 or more", o.Slot)
	}
	return nil
}

// pause returns the pauses that the authors of ElasticFlow measured: 2 s and at restarts 27 s more below
// 256 GPUs, otherwise 7 s and 47 s more.
func (o *Options) pause() policy.Pause {
	pause := policy.Pause{
		Base:         2 * time.Second,
		PerDoubling:  2 * time.Second,
		Restart:      27 * time.Second,
		RestartEvery: int(o.Slot.Seconds()),
		Charge:       o.Charge,
	}
	if o.GPUs >= 256 {
		pause.Base, pause.Restart = 7*time.Second, 47*time.Second
	}
	return pause
}

// Run plays a trace with the policy of a name.
func Run(ctx context.Context, trace []TraceJob, rates Throughputs, name string, o Options) (*TraceScore, error) {
	if err := errors.Join(CheckPolicies([]string{name}), o.Validate()); err != nil {
		return nil, err
	}
	w, err := newWorld(trace, rates, o)
	if err != nil {
		return nil, err
	}

	var times []time.Duration
	p := constructors[slices.Index(Policies(), name)].policy
	decide := func(v *policy.View) []policy.Move {
		if o.Progress != nil {
			o.Progress(name, w.next)
		}
		start := time.Now()
		moves := p.Plan(v)
		times = append(times, time.Since(start))
		return moves
	}
	if err := w.play(ctx, decide); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}

	var schedule []Stretch
	for _, j := range w.jobs {
		schedule = append(schedule, j.stretches...)
	}
	sortSchedule(schedule)
	return newResult(name, w, schedule, times), nil
}

func newWorld(trace []TraceJob, rates Throughputs, o Options) (*world, error) {
	w := &world{Options: o, pauses: o.pause()}
	if len(trace) == 0 {
		return nil, errors.New("the trace has no jobs")
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

// optionsOf returns the batch sizes of a job, its own first.
func optionsOf(t TraceJob, curves map[int]policy.Curve, allowBatchChange bool) (options []gpuOption) {
	sizes := []int{t.BatchSize}
	if allowBatchChange && len(curves[t.BatchSize]) > 0 {
		others := slices.Sorted(maps.Keys(curves))
		sizes = append(sizes, slices.DeleteFunc(others, func(size int) bool { return size == t.BatchSize })...)
	}
	for _, size := range sizes {
		if curve := curves[size]; len(curve) > 0 {
			iterations := t.Iterations * float64(t.BatchSize) / float64(size)
			options = append(options, gpuOption{size, iterations, curve})
		}
	}
	return options
}
