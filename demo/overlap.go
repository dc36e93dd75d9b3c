package demo

import (
	"cmp"
	"context"
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

const (
	maxOverlapping  = 3   // maximum number of jobs at the same time: as many as were measured
	meanOverlapping = 1.3 // jobs at the same time, for which the mean gap between arrivals is set
)

// overlapJob is a job that runs while others run.
type overlapJob struct {
	JobID             string           `json:"job_id"`
	SLOSeconds        float64          `json:"slo_seconds"`
	Decision          schemas.Decision `json:"decision"`
	BatchSize         uint32           `json:"batch_size"`
	CPUs              uint32           `json:"cpus"`
	Neighbours        float64          `json:"neighbours"` // at submission
	Probability       *float64         `json:"probability"`
	PredictedSeconds  *float64         `json:"predicted_seconds"`
	MeasuredSeconds   float64          `json:"measured_seconds"`
	QuarterSeconds    *float64         `json:"quarter_seconds"` // predicted after a quarter of the epochs
	PredictedAccuracy *float64         `json:"predicted_accuracy"`
	MeasuredAccuracy  *float64         `json:"measured_accuracy"`
	Met               bool             `json:"met"`
}

// overlapResult is the JSON output of courier demo --jobs.
type overlapResult struct {
	Jobs       []overlapJob `json:"jobs"`
	Confidence float64      `json:"confidence"`
	Promised   uint64       `json:"promised"`
	Kept       uint64       `json:"kept"` // number of kept promises
	// KeptLow and KeptHigh are the 95 % interval of the ratio of kept promises (Wilson 1927).
	KeptLow  float64 `json:"kept_low"`
	KeptHigh float64 `json:"kept_high"`
	// SubmitError and QuarterError are medians of |predicted / measured - 1| of the response time.
	SubmitError  float64 `json:"median_error_at_submit"`
	QuarterError float64 `json:"median_error_after_a_quarter"`
}

// overlap submits jobs that overlap. As in the ICPE 2021 paper, their SLOs have a normal
// distribution with the mean of all measured times, and a third of it as standard deviation.
func (d *demo) overlap(ctx context.Context, measured []float64) (overlapResult, error) {
	mean := 0.0
	for _, s := range measured {
		mean += s / float64(len(measured))
	}
	shortest := slices.Min(measured)
	d.printf("")
	d.printf("3. Advise: %d jobs arrive at random, at most %d at the same time", d.o.Jobs,
		maxOverlapping)
	d.printf("   SLOs have a normal distribution: mean %s, standard deviation %s, minimum %s.",
		schemas.FormatSeconds(mean), schemas.FormatSeconds(mean/3), schemas.FormatSeconds(shortest))

	predicted := d.recordQuarters(ctx)
	result := overlapResult{
		Confidence: cmp.Or(d.o.Confidence, schemas.DefaultConfidence),
		Jobs:       make([]overlapJob, d.o.Jobs),
	}
	var mu sync.Mutex // protects the output
	group, jobs := errgroup.WithContext(ctx)
	group.SetLimit(maxOverlapping)
	for i := range d.o.Jobs {
		slo := max(shortest, mean*(1+d.random.NormFloat64()/3))
		gapSeconds := d.random.ExpFloat64() * mean / meanOverlapping
		seed := d.random.Uint32()
		group.Go(func() error {
			j, err := d.runOverlapJob(jobs, slo, seed)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			result.Jobs[i] = j
			d.printf("   %s", j.String())
			return nil
		})
		if err := wait(jobs, time.Duration(gapSeconds*float64(time.Second))); err != nil {
			break
		}
	}
	if err := errors.Join(group.Wait(), predicted.end()); err != nil {
		return result, err
	}

	for i := range result.Jobs {
		result.Jobs[i].QuarterSeconds = predicted.forJob(result.Jobs[i].JobID)
	}
	result.score()
	return result, nil
}

// String describes the job in a line.
func (j *overlapJob) String() string {
	outcome := "missed"
	if j.Met {
		outcome = "met"
	}
	return fmt.Sprintf("SLO %s: batch size %d on %s, neighbours %.0f, %s;"+
		" predicted %s, measured %s, %s",
		schemas.FormatSeconds(j.SLOSeconds), j.BatchSize, schemas.FormatCPUs(j.CPUs), j.Neighbours,
		j.Decision, report.OptionalSeconds(j.PredictedSeconds),
		schemas.FormatSeconds(j.MeasuredSeconds), outcome)
}

// runOverlapJob submits and runs one job.
func (d *demo) runOverlapJob(
	ctx context.Context, sloSeconds float64, seed uint32,
) (overlapJob, error) {
	q := schemas.JobRequest{
		CPUs:       factorialCPUs,
		BatchSizes: factorialBatchSizes,
		SLO:        schemas.Duration(time.Duration(sloSeconds*1e3).Abs() * time.Millisecond),
		Confidence: d.o.Confidence,
		Labels:     map[string]string{"phase": "crowd"},
	}
	r, err := d.runJob(ctx, q, 0, seed)
	if err != nil {
		return overlapJob{}, err
	}
	if r.Advice == nil || r.Advice.Chosen == nil {
		return overlapJob{}, fmt.Errorf("job %s got no advice", r.JobID)
	}

	a, c := r.Advice, r.Advice.Chosen
	j := overlapJob{
		JobID:             r.JobID,
		SLOSeconds:        q.SLO.Seconds(),
		Decision:          a.Decision,
		BatchSize:         c.BatchSize,
		CPUs:              c.CPUs,
		Neighbours:        a.Load.ConcurrentJobs - 1,
		Probability:       c.Probability,
		MeasuredSeconds:   responseSeconds(r),
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

// quarterPredictions records the response time of each job as predicted after a quarter of its
// epochs, in seconds.
type quarterPredictions struct {
	seconds sync.Map // by job ID
	stop    context.CancelFunc
	ended   chan error
}

// recordQuarters listens to the advice for running jobs until end is called.
func (d *demo) recordQuarters(ctx context.Context) *quarterPredictions {
	ctx, stop := context.WithCancel(ctx)
	q := &quarterPredictions{stop: stop, ended: make(chan error, 1)}
	go func() {
		advice := schemas.JobSubject("*", schemas.EventAdvice)
		q.ended <- d.o.Bus.Listen(ctx, advice, func(e schemas.Event) {
			a := e.(*schemas.Advice)
			if a.EpochsDone >= jobEpochs/4 && a.Chosen.PredictedSeconds != nil {
				q.seconds.LoadOrStore(a.JobID, a.ElapsedSeconds+*a.Chosen.PredictedSeconds)
			}
		})
	}()
	return q
}

// forJob returns the prediction for a job; nil if there was none.
func (q *quarterPredictions) forJob(job string) *float64 {
	if s, ok := q.seconds.Load(job); ok {
		seconds := s.(float64)
		return &seconds
	}
	return nil
}

func (q *quarterPredictions) end() error {
	q.stop()
	return <-q.ended
}

// score counts promises and computes the errors.
func (r *overlapResult) score() {
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

func (d *demo) printOverlap(r overlapResult) error {
	if d.o.JSON {
		return d.printJSON(r)
	}
	t := tabwriter.NewWriter(d.o.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nSLO\tbatch\tCPUs\tneighbours\tdecision\tprobability\t"+
		"predicted\tmeasured\tmet\tpredicted\tmeasured\t")
	fmt.Fprintln(t, "\tsize\t\t\t\t\ttime\ttime\t\taccuracy\taccuracy\t")
	for _, j := range r.Jobs {
		row := []string{
			schemas.FormatSeconds(j.SLOSeconds),
			fmt.Sprint(j.BatchSize),
			fmt.Sprint(j.CPUs),
			fmt.Sprint(j.Neighbours),
			string(j.Decision),
			report.Optional(j.Probability, "%.3f"),
			report.OptionalSeconds(j.PredictedSeconds),
			schemas.FormatSeconds(j.MeasuredSeconds),
			yesOrNo(j.Met),
			report.Optional(j.PredictedAccuracy, "%.3f"),
			report.Optional(j.MeasuredAccuracy, "%.3f"),
		}
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	attainment := float64(r.Kept) / float64(max(1, r.Promised))
	fmt.Fprintf(d.o.Stdout, "\nCourier promised to meet %d of %d SLOs and kept %d promises:"+
		" %.3f (95 %% interval %.3f to %.3f), confidence %.2f\n",
		r.Promised, len(r.Jobs), r.Kept, attainment, r.KeptLow, r.KeptHigh, r.Confidence)
	fmt.Fprintf(d.o.Stdout, "Median error of the predicted time: %.1f %% at submission,"+
		" %.1f %% after a quarter of the epochs\n", 100*r.SubmitError, 100*r.QuarterError)
	return nil
}
