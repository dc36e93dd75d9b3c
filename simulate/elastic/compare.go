package elastic

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// PolicyComparison is the outcome of several policies on the same trace.
type PolicyComparison struct {
	Jobs     int          `json:"jobs"`
	GPUs     int          `json:"gpus"`
	Slot     float64      `json:"slot_seconds"`
	Charge   string       `json:"charge"`
	Batch    bool         `json:"allow_batch_change"`
	Policies []TraceScore `json:"policies"`
}

// TraceScore is what a policy reached on a trace.
type TraceScore struct {
	Policy string  `json:"policy"`
	Jobs   int     `json:"jobs"`
	Kept   int     `json:"kept"`
	Ratio  float64 `json:"ratio"` // kept / jobs

	Refused int `json:"refused"`
	// Broken counts the admitted jobs that were not kept.
	Broken       int     `json:"broken_promises"`
	BrokenRatio  float64 `json:"broken_ratio"` // broken / jobs
	BatchChanged int     `json:"batch_changed"`

	Moments         int     `json:"moments"`
	HeldGPUHours    float64 `json:"held_gpu_hours"`
	PauseGPUHours   float64 `json:"pause_gpu_hours"` // part of the held ones that pauses took
	Decisions       int     `json:"decisions"`
	DecisionSeconds float64 `json:"decision_p99_seconds"`

	Schedule []Stretch `json:"-"`
}

// Compare plays a trace with each policy.
func Compare(
	ctx context.Context, trace []TraceJob, rates Throughputs, names []string, o Options,
) (*PolicyComparison, error) {
	if err := CheckPolicies(names); err != nil {
		return nil, err
	}
	c := &PolicyComparison{
		Jobs:   len(trace),
		GPUs:   o.GPUs,
		Slot:   o.Slot.Seconds(),
		Charge: string(o.Charge),
		Batch:  o.AllowBatchChange,
	}
	for _, name := range names {
		r, err := Run(ctx, trace, rates, name, o)
		if err != nil {
			return nil, err
		}
		c.Policies = append(c.Policies, *r)
	}
	return c, nil
}

func newResult(name string, w *world, schedule []Stretch, times []time.Duration) *TraceScore {
	r := &TraceScore{
		Policy:        name,
		Jobs:          len(w.jobs),
		Moments:       w.moments,
		HeldGPUHours:  w.heldSeconds / 3600,
		PauseGPUHours: w.pauseSeconds / 3600,
		Decisions:     len(times),
		Schedule:      schedule,
	}
	for _, j := range w.jobs {
		switch {
		case !j.admitted:
			r.Refused++
		case j.isKept:
			r.Kept++
		default:
			r.Broken++
		}
		if j.admitted && j.chosen > 0 {
			r.BatchChanged++
		}
	}
	r.Ratio = float64(r.Kept) / float64(r.Jobs)
	r.BrokenRatio = float64(r.Broken) / float64(r.Jobs)
	slices.Sort(times)
	r.DecisionSeconds = times[len(times)*99/100].Seconds()
	return r
}

// WriteText writes the comparison as a table, with a tab behind each cell, and a legend.
func (c *PolicyComparison) WriteText(out io.Writer) {
	slot := time.Duration(c.Slot * float64(time.Second))
	fmt.Fprintf(out, "%s, %s, slot %s, charge %s\n", schemas.FormatCount(uint64(c.Jobs), "job"),
		schemas.FormatCount(uint64(c.GPUs), "GPU"), slot, c.Charge)
	if names := c.keepingBatch(); len(names) > 0 {
		fmt.Fprintf(out, "policies that keep the batch size of each job: %s\n", strings.Join(names, ", "))
	}
	fmt.Fprintln(out)
	fmt.Fprintln(out, "policy\tratio\tkept\trefused\tbroken\tGPU hours\tpaused\tmoments\tdecisions\tp99 ms\t")
	for _, r := range c.Policies {
		fmt.Fprintf(out, "%s\t%.4f\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t%.1f\t\n", r.Policy, r.Ratio, r.Kept,
			r.Refused, r.Broken, hoursText(r.HeldGPUHours), hoursText(r.PauseGPUHours), r.Moments,
			r.Decisions, r.DecisionSeconds*1000)
	}
	io.WriteString(out, comparisonLegend)
}

// hoursText formats hours as a whole number, and those of a small trace with two digits.
func hoursText(hours float64) string {
	if hours >= 10 {
		return fmt.Sprintf("%.0f", hours)
	}
	return fmt.Sprintf("%.2g", hours)
}

// keepingBatch returns the compared policies that do not choose another batch size although they may.
func (c *PolicyComparison) keepingBatch() (names []string) {
	for i := range c.Policies {
		for _, k := range constructors {
			if c.Batch && k.keepBatch && k.name == c.Policies[i].Policy {
				names = append(names, k.name)
			}
		}
	}
	return names
}

// comparisonLegend explains the columns.
const comparisonLegend = `
ratio      kept jobs / all jobs of the trace, refused ones included
kept       jobs that completed all iterations by their deadline
refused    jobs that were refused at their submission
broken     admitted jobs that were not kept
GPU hours  held by jobs
paused     part of the GPU hours in which jobs stood still after moments
moments    times at which some job started or changed its number of GPUs
p99 ms     time of a decision at the 99th percentile, measured on this machine
`

// WriteSchedule writes the schedule of the policy as CSV, in order of start.
func (r *TraceScore) WriteSchedule(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"job_id", "start_seconds", "end_seconds", "gpus", "batch_size"}) // see w.Error
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	for _, s := range r.Schedule {
		_ = w.Write([]string{
			s.Job, seconds(s.Start), seconds(s.End), strconv.Itoa(s.GPUs), strconv.Itoa(s.BatchSize),
		})
	}
	w.Flush()
	return w.Error()
}
