package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// An SLO exceeds the typical time of a batch size by noiseMargin standard deviations of the noise,
// and by at least minMargin, because a machine may become busier than during the measurement. With
// a minimum of 0.1, 2 of 30 promises were missed by 1 and 2 %. With 0.14, 2 of 33 SLOs were not
// promised. It is at most about twice that time: more would be no deadline. The limits are margins
// of the logarithm of the time.
const (
	noiseMargin = 3
	minMargin   = 0.18
	maxMargin   = 0.7
)

// sloJob is a job with an SLO, which runs as advised and with a random batch size.
type sloJob struct {
	SLOSeconds            float64          `json:"slo_seconds"`
	BatchSize             int              `json:"batch_size"`
	Decision              schemas.Decision `json:"decision"`
	Probability           *float64         `json:"probability"`
	Unpromised            string           `json:"unpromised,omitempty"` // why it was not promised
	PredictedSeconds      *float64         `json:"predicted_seconds"`
	MeasuredSeconds       float64          `json:"measured_seconds"`
	PredictedAccuracy     *float64         `json:"predicted_accuracy"`
	MeasuredAccuracy      *float64         `json:"measured_accuracy"`
	Met                   bool             `json:"met"`
	RandomBatchSize       int              `json:"random_batch_size"`
	RandomMeasuredSeconds float64          `json:"random_measured_seconds"`
	RandomAccuracy        *float64         `json:"random_measured_accuracy"`
	RandomMet             bool             `json:"random_met"`
}

// Result is the outcome of the demo.
type Result struct {
	Jobs       []sloJob `json:"jobs"`
	NoiseRatio float64  `json:"noise_ratio"` // standard deviation of log(time) of equal jobs
	Promised   int      `json:"promised"`
	Kept       int      `json:"kept"` // number of kept promises
	// Value is the mean accuracy of the jobs, with 0 for a job that missed its SLO.
	Value       float64  `json:"value"`
	RandomValue float64  `json:"random_value"`
	Skipped     []string `json:"skipped"`
}

// runSLOJobs runs three jobs. Each SLO leaves just enough time for one of the batch sizes: the
// fastest, a middle one, and the slowest.
func (d *demo) runSLOJobs(ctx context.Context, typical []typicalTime, noise float64) (*Result, error) {
	result := &Result{NoiseRatio: noise, Skipped: []string{}}
	margin := min(max(minMargin, noiseMargin*noise), maxMargin)
	d.printf("")
	d.printf("3. Advise: three jobs run with the advised batch size, and again with a random one")
	d.printf("   Each SLO is %.0f %% above the typical time of one batch size: the fastest,"+
		" a middle one, the slowest.", 100*(math.Exp(margin)-1))
	for _, t := range fastMiddleSlow(typical) {
		job, err := d.runSLOJob(ctx, t.seconds*math.Exp(margin), noise)
		if err != nil {
			return nil, fmt.Errorf("job with an SLO: %w", err)
		}
		result.Jobs = append(result.Jobs, job)
	}
	result.score()
	if reason := d.o.SQLMissing(); reason != "" {
		result.Skipped = append(result.Skipped, "sql: "+reason)
	}
	return result, nil
}

// fastMiddleSlow returns the fastest, the slowest, and between them the one closest to the middle
// on a logarithmic scale.
func fastMiddleSlow(typical []typicalTime) []typicalTime {
	first, last := typical[0], typical[len(typical)-1]
	middle := math.Sqrt(first.seconds * last.seconds)
	distance := func(t typicalTime) float64 { return math.Abs(math.Log(t.seconds / middle)) }
	closest := slices.MinFunc(typical, func(a, b typicalTime) int {
		return cmp.Compare(distance(a), distance(b))
	})
	return []typicalTime{first, closest, last}
}

// score counts promises and computes the values.
func (r *Result) score() {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Decision == schemas.MeetsSLO {
			r.Promised++
			if j.Met {
				r.Kept++
			}
		}
		if j.Met && j.MeasuredAccuracy != nil {
			r.Value += *j.MeasuredAccuracy / float64(len(r.Jobs))
		}
		if j.RandomMet && j.RandomAccuracy != nil {
			r.RandomValue += *j.RandomAccuracy / float64(len(r.Jobs))
		}
	}
}

// runSLOJob runs a job with an SLO as advised, and again with a random other batch size.
func (d *demo) runSLOJob(ctx context.Context, sloSeconds, noise float64) (sloJob, error) {
	slo := time.Duration(sloSeconds * float64(time.Second)).Round(10 * time.Millisecond)
	q := schemas.JobRequest{
		SLO:    schemas.Duration(slo),
		Labels: map[string]string{"phase": "advised"},
	}
	advised, err := d.runJob(ctx, q, 0, d.random.Uint32())
	if err != nil {
		return sloJob{}, err
	}
	if advised.Advice == nil || advised.Advice.Chosen == nil {
		return sloJob{}, fmt.Errorf("job %s got no advice", advised.JobID)
	}
	d.printf("   SLO %s: %s", schemas.FormatSeconds(slo.Seconds()), advised.Advice.Message)

	chosen := advised.Advice.Chosen
	j := sloJob{
		SLOSeconds:        slo.Seconds(),
		BatchSize:         int(chosen.BatchSize),
		Decision:          advised.Advice.Decision,
		Probability:       chosen.Probability,
		PredictedSeconds:  chosen.PredictedSeconds,
		MeasuredSeconds:   responseSeconds(advised),
		PredictedAccuracy: chosen.PredictedAccuracy,
		MeasuredAccuracy:  advised.Accuracy,
	}
	j.Met = j.MeasuredSeconds <= j.SLOSeconds
	if j.Decision != schemas.MeetsSLO {
		j.Unpromised = unpromised(chosen, advised.Advice.Confidence, noise)
	}

	q.Labels = map[string]string{"phase": "random"}
	j.RandomBatchSize = d.otherBatchSize(j.BatchSize)
	random, err := d.runJob(ctx, q, j.RandomBatchSize, d.random.Uint32())
	if err != nil {
		return sloJob{}, err
	}
	j.RandomMeasuredSeconds, j.RandomAccuracy = responseSeconds(random), random.Accuracy
	j.RandomMet = j.RandomMeasuredSeconds <= j.SLOSeconds
	d.printf("      measured %s, %s; with batch size %d: %s, %s",
		schemas.FormatSeconds(j.MeasuredSeconds), outcomeText(j.Met, j.MeasuredAccuracy),
		j.RandomBatchSize, schemas.FormatSeconds(j.RandomMeasuredSeconds),
		outcomeText(j.RandomMet, j.RandomAccuracy))
	return j, nil
}

// unpromised returns why an SLO is not promised. noise is the standard deviation of log(time) of equal
// jobs.
func unpromised(a *schemas.Alternative, confidence, noise float64) string {
	if a.Reason != "" {
		return a.Reason
	}
	text := "its time is not known"
	if a.Probability != nil {
		text = fmt.Sprintf("its probability, %s, is below %g", schemas.FormatProbability(*a.Probability),
			confidence)
	}
	return fmt.Sprintf("%s; the times of equal jobs differed by %.0f %%, and other work on this machine"+
		" increases that", text, 100*noise)
}

func outcome(met bool) string { return map[bool]string{true: "met", false: "missed"}[met] }

// outcomeText describes whether a job met its SLO, and its accuracy.
func outcomeText(met bool, accuracy *float64) string {
	return outcome(met) + " with accuracy " + schemas.OptionalNumber(accuracy, "%.3f")
}

// otherBatchSize returns a random one of the other batch sizes.
func (d *demo) otherBatchSize(batch int) int {
	others := slices.DeleteFunc(slices.Clone(batchSizes), func(b int) bool {
		return b == batch
	})
	return others[d.random.IntN(len(others))]
}

// WriteText writes the jobs as a table, and how many promises were kept.
func (r *Result) WriteText(out io.Writer) {
	fmt.Fprintln(out, "\nSLO\tbatch size\tdecision\tpredicted\tmeasured\tresult\taccuracy")
	for _, j := range r.Jobs {
		fmt.Fprintf(out, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", schemas.FormatSeconds(j.SLOSeconds), j.BatchSize,
			j.Decision, schemas.OptionalSeconds(j.PredictedSeconds), schemas.FormatSeconds(j.MeasuredSeconds),
			outcome(j.Met), schemas.OptionalNumber(j.MeasuredAccuracy, "%.3f"))
		fmt.Fprintf(out, "\t%d\tat random\t\t%s\t%s\t%s\n", j.RandomBatchSize,
			schemas.FormatSeconds(j.RandomMeasuredSeconds), outcome(j.RandomMet),
			schemas.OptionalNumber(j.RandomAccuracy, "%.3f"))
	}
	fmt.Fprintf(out, "\nCourier promised to meet %d of %d SLOs and kept %d promises.\n",
		r.Promised, len(r.Jobs), r.Kept)
	for _, j := range r.Jobs {
		if j.Unpromised != "" {
			fmt.Fprintf(out, "Not promised: SLO %s, because %s.\n",
				schemas.FormatSeconds(j.SLOSeconds), j.Unpromised)
		}
	}
	fmt.Fprintf(out, "Mean accuracy, 0 for a job that missed its SLO:"+
		" %.3f as advised, %.3f at random.\n", r.Value, r.RandomValue)
	for _, s := range r.Skipped {
		fmt.Fprintln(out, "skipped:", s)
	}
}
