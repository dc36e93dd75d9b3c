package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"courier/report"
	"courier/schemas"

	"golang.org/x/sync/errgroup"
)

// What courier demo --jobs adds: jobs that overlap at random.
const (
	crowdAtOnce  = 3   // most jobs at once: as many as were measured
	crowdOverlap = 1.3 // jobs at once that the mean gap between two arrivals aims at
)

// crowdJob is one job among others.
type crowdJob struct {
	JobID             string           `json:"job_id"`
	SLOSeconds        float64          `json:"slo_seconds"`
	Decision          schemas.Decision `json:"decision"`
	BatchSize         uint32           `json:"batch_size"`
	CPUs              uint32           `json:"cpus"`
	Neighbours        float64          `json:"neighbours"` // when it was submitted
	Probability       *float64         `json:"probability"`
	PredictedSeconds  *float64         `json:"predicted_seconds"`
	MeasuredSeconds   float64          `json:"measured_seconds"`
	QuarterSeconds    *float64         `json:"quarter_seconds"` // predicted after a quarter of it
	PredictedAccuracy *float64         `json:"predicted_accuracy"`
	MeasuredAccuracy  *float64         `json:"measured_accuracy"`
	Met               bool             `json:"met"`
}

// crowdResult is what courier demo --jobs --output json prints.
type crowdResult struct {
	Jobs       []crowdJob `json:"jobs"`
	Confidence float64    `json:"confidence"`
	Promised   uint64     `json:"promised"`
	Kept       uint64     `json:"kept"`
	// The 95 % interval of the share of promises kept (Wilson 1927).
	KeptLow  float64 `json:"kept_low"`
	KeptHigh float64 `json:"kept_high"`
	// Medians of |predicted / measured - 1| of the whole time.
	SubmitError  float64 `json:"median_error_at_submit"`
	QuarterError float64 `json:"median_error_after_a_quarter"`
}

// crowd submits jobs that overlap, with SLOs drawn as in the paper: normal, with a
// third of the mean as deviation, the mean that of all that was measured.
func (d *demo) crowd(ctx context.Context, measured []float64) (crowdResult, error) {
	mean := 0.0
	for _, s := range measured {
		mean += s / float64(len(measured))
	}
	shortest := slices.Min(measured)
	d.say("")
	d.say("3. Promise: %d jobs come at random, at most %d at once", d.c.Jobs, crowdAtOnce)
	d.say("   SLOs are drawn from a normal distribution, mean %s, standard deviation %s, least %s.",
		schemas.FormatSeconds(mean), schemas.FormatSeconds(mean/3), schemas.FormatSeconds(shortest))
	predicted := d.watchQuarters(ctx)
	result := crowdResult{
		Confidence: cmp.Or(d.c.Confidence, schemas.DefaultConfidence),
		Jobs:       make([]crowdJob, d.c.Jobs),
	}
	var lines sync.Mutex
	group, jobs := errgroup.WithContext(ctx)
	group.SetLimit(crowdAtOnce)
	for i := range d.c.Jobs {
		slo := max(shortest, mean*(1+d.random.NormFloat64()/3))
		gap := time.Duration(d.random.ExpFloat64() * mean / crowdOverlap * float64(time.Second))
		seed := d.random.Uint32()
		group.Go(func() error {
			j, err := d.crowdJob(jobs, slo, seed)
			if err != nil {
				return err
			}
			lines.Lock()
			defer lines.Unlock()
			result.Jobs[i] = j
			d.say("   %s", j.String())
			return nil
		})
		if err := pause(jobs, gap); err != nil {
			break
		}
	}
	err := errors.Join(group.Wait(), predicted.end())
	if err != nil {
		return result, err
	}
	for i := range result.Jobs {
		result.Jobs[i].QuarterSeconds = predicted.of(result.Jobs[i].JobID)
	}
	result.score()
	return result, nil
}

// String describes the job in a line.
func (j *crowdJob) String() string {
	outcome := "missed"
	if j.Met {
		outcome = "met"
	}
	return fmt.Sprintf("SLO %s: batch size %d on %s beside %.0f, %s; predicted %s, took %s, %s",
		schemas.FormatSeconds(j.SLOSeconds), j.BatchSize, schemas.FormatCPUs(j.CPUs), j.Neighbours,
		j.Decision, report.OptionalSeconds(j.PredictedSeconds),
		schemas.FormatSeconds(j.MeasuredSeconds),
		outcome)
}

// crowdJob submits and runs one job.
func (d *demo) crowdJob(ctx context.Context, sloSeconds float64, seed uint32) (crowdJob, error) {
	q := schemas.JobRequest{
		CPUs:       factorialCPUs,
		BatchSizes: factorialBatchSizes,
		SLO:        schemas.Duration(time.Duration(sloSeconds*1e3).Abs() * time.Millisecond),
		Confidence: d.c.Confidence,
		Labels:     map[string]string{"phase": "crowd"},
	}
	r, err := d.job(ctx, q, 0, seed)
	if err != nil {
		return crowdJob{}, err
	}
	if r.Advice == nil || r.Advice.Chosen == nil {
		return crowdJob{}, fmt.Errorf("job %s got no advice", r.JobID)
	}
	a, c := r.Advice, r.Advice.Chosen
	j := crowdJob{
		JobID:             r.JobID,
		SLOSeconds:        q.SLO.Seconds(),
		Decision:          a.Decision,
		BatchSize:         c.BatchSize,
		CPUs:              c.CPUs,
		Neighbours:        a.Load.ConcurrentJobs - 1,
		Probability:       c.Probability,
		MeasuredSeconds:   response(r),
		PredictedAccuracy: c.PredictedAccuracy,
		MeasuredAccuracy:  r.Accuracy,
	}
	if c.PredictedSeconds != nil {
		whole := a.ElapsedSeconds + *c.PredictedSeconds
		j.PredictedSeconds = &whole
	}
	j.Met = j.MeasuredSeconds <= j.SLOSeconds
	return j, nil
}

// quarters notes what the whole time of each job was predicted to be when a
// quarter of its epochs was done.
type quarters struct {
	mu      sync.Mutex
	seconds map[string]float64
	stop    context.CancelFunc
	ended   chan error
}

// watchQuarters listens to what is predicted of running jobs until end is called.
func (d *demo) watchQuarters(ctx context.Context) *quarters {
	ctx, stop := context.WithCancel(ctx)
	q := &quarters{seconds: map[string]float64{}, stop: stop, ended: make(chan error, 1)}
	go func() {
		advice := schemas.JobSubject("*", schemas.EventAdvice)
		q.ended <- d.local.bus.Listen(ctx, advice, func(e schemas.Event) {
			q.note(e.(*schemas.Advice))
		})
	}()
	return q
}

func (q *quarters) note(a *schemas.Advice) {
	if a.EpochsDone < demoEpochs/4 || a.Chosen.PredictedSeconds == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.seconds[a.JobID]; !known {
		q.seconds[a.JobID] = a.ElapsedSeconds + *a.Chosen.PredictedSeconds
	}
}

// of is the whole time of a job, nil if nothing was predicted of it.
func (q *quarters) of(job string) *float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s, ok := q.seconds[job]; ok {
		return &s
	}
	return nil
}

func (q *quarters) end() error {
	q.stop()
	return <-q.ended
}

// score counts the promises and the errors.
func (r *crowdResult) score() {
	var submit, quarter []float64
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Decision == schemas.MeetsSLO {
			r.Promised++
			if j.Met {
				r.Kept++
			}
		}
		if j.PredictedSeconds != nil {
			submit = append(submit, math.Abs(*j.PredictedSeconds/j.MeasuredSeconds-1))
		}
		if j.QuarterSeconds != nil {
			quarter = append(quarter, math.Abs(*j.QuarterSeconds/j.MeasuredSeconds-1))
		}
	}
	r.SubmitError, r.QuarterError = median(submit), median(quarter)
	if r.Promised > 0 {
		r.KeptLow, r.KeptHigh = schemas.Wilson(r.Kept, r.Promised)
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func (d *demo) printCrowd(r crowdResult) error {
	if d.c.Output == "json" {
		e := json.NewEncoder(d.w.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	t := tabwriter.NewWriter(d.w.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nSLO\tbatch\tCPUs\tbeside\tdecision\tprobability\t"+
		"predicted\ttook\tmet\tpredicted\treached\t")
	fmt.Fprintln(t, "\tsize\t\t\t\t\ttime\t\t\taccuracy\taccuracy\t")
	for _, j := range r.Jobs {
		row := []string{
			schemas.FormatSeconds(j.SLOSeconds), fmt.Sprint(j.BatchSize), fmt.Sprint(j.CPUs),
			fmt.Sprint(j.Neighbours), string(j.Decision), report.Optional(j.Probability, "%.3f"),
			report.OptionalSeconds(j.PredictedSeconds), schemas.FormatSeconds(j.MeasuredSeconds),
			yes(j.Met),
			report.Optional(j.PredictedAccuracy, "%.3f"), report.Optional(j.MeasuredAccuracy,
				"%.3f"),
		}
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	share := float64(r.Kept) / float64(max(1, r.Promised))
	fmt.Fprintf(d.w.stdout,
		"\npromised %d, kept %d: %.3f (95 %% interval %.3f to %.3f), asked for %.2f\n",
		r.Promised, r.Kept, share, r.KeptLow, r.KeptHigh, r.Confidence)
	fmt.Fprintf(d.w.stdout, "median error of the time: %.1f %% at submission,"+
		" %.1f %% after a quarter of the epochs\n", 100*r.SubmitError, 100*r.QuarterError)
	return nil
}

// pause waits unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
