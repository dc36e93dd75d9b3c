package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"courier/bus"
	"courier/collector"
	"courier/report"
	"courier/runner"
	"courier/runner/output"
	"courier/schemas"
)

// An SLO leaves so many standard deviations of the noise over what a batch size takes, and at
// least leastMargin: a machine is never as quiet as it was during a minute.
const (
	noiseMargin = 3
	leastMargin = 0.1
)

// demoJob is one line of the table.
type demoJob struct {
	SLOSeconds            float64          `json:"slo_seconds"`
	BatchSize             int              `json:"batch_size"`
	Decision              schemas.Decision `json:"decision"`
	Probability           *float64         `json:"probability"`
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

// demoResult is what courier demo --output json prints.
type demoResult struct {
	Jobs       []demoJob `json:"jobs"`
	NoiseRatio float64   `json:"noise_ratio"` // standard deviation of the time of jobs alike
	Promised   int       `json:"promised"`
	Kept       int       `json:"kept"` // of the promised
	// Value is the mean accuracy of the jobs, 0 for those that missed their SLO.
	Value       float64  `json:"value"`
	RandomValue float64  `json:"random_value"`
	Skipped     []string `json:"skipped"`
}

// orders runs the three jobs with SLOs: each leaves just enough time for one of the batch sizes,
// the fastest, one of the middle, and the slowest.
func (d *demo) orders(
	ctx context.Context, typical []typicalTime, noise float64,
) (demoResult, error) {
	result := demoResult{NoiseRatio: noise, Skipped: []string{}}
	margin := max(leastMargin, noiseMargin*noise)
	d.say("")
	d.say("3. Promise: three jobs run as advised, and again with another batch size at random")
	d.say("   Each SLO is %.0f %% above what one batch size took: the fastest, one of the middle,"+
		" the slowest.", 100*(math.Exp(margin)-1))
	for _, t := range aims(typical) {
		job, err := d.order(ctx, t.seconds*math.Exp(margin))
		if err != nil {
			return result, fmt.Errorf("job with an SLO: %w", err)
		}
		result.Jobs = append(result.Jobs, job)
	}
	result.score()
	d.local.mu.Lock()
	defer d.local.mu.Unlock()
	if why := d.local.sqlWhy; why != "" {
		result.Skipped = append(result.Skipped, "sql: "+why)
	} else if d.local.endpoints.ClickHouseHTTPURL == "" {
		result.Skipped = append(result.Skipped, "sql: the engine was not ready in time")
	}
	return result, nil
}

// aims returns the fastest, that next to the middle between both on a logarithmic scale, and the
// slowest.
func aims(typical []typicalTime) []typicalTime {
	first, last := typical[0], typical[len(typical)-1]
	middle := math.Sqrt(first.seconds * last.seconds)
	far := func(t typicalTime) float64 { return math.Abs(math.Log(t.seconds / middle)) }
	best := slices.MinFunc(typical, func(a, b typicalTime) int {
		if far(a) < far(b) {
			return -1
		}
		return 1
	})
	return []typicalTime{first, best, last}
}

// score counts the promises, and what came of the jobs.
func (r *demoResult) score() {
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

// demoRequest fills in what all jobs of the demo have in common.
func demoRequest(q schemas.JobRequest) schemas.JobRequest {
	q.Model, q.Epochs, q.User = demoModel, demoEpochs, "demo"
	if q.BatchSizes == nil {
		q.BatchSizes = demoBatchSizes
	}
	return q
}

// order submits a job with an SLO, runs it as advised, and again with another batch size, drawn
// at random.
func (d *demo) order(ctx context.Context, sloSeconds float64) (demoJob, error) {
	slo := time.Duration(sloSeconds * float64(time.Second)).Round(10 * time.Millisecond)
	q := schemas.JobRequest{
		CPUs: schemas.CPUs{1}, SLO: schemas.Duration(slo), Labels: map[string]string{
			"phase": "advised",
		},
	}
	advised, err := d.job(ctx, q, 0, d.random.Uint32())
	if err != nil {
		return demoJob{}, err
	}
	if advised.Advice == nil || advised.Advice.Chosen == nil {
		return demoJob{}, fmt.Errorf("job %s got no advice", advised.JobID)
	}
	d.say("   SLO %s: %s", schemas.FormatSeconds(slo.Seconds()), advised.Advice.Message)
	chosen := advised.Advice.Chosen
	j := demoJob{
		SLOSeconds:        slo.Seconds(),
		BatchSize:         int(chosen.BatchSize),
		Decision:          advised.Advice.Decision,
		Probability:       chosen.Probability,
		PredictedSeconds:  chosen.PredictedSeconds,
		MeasuredSeconds:   response(advised),
		PredictedAccuracy: chosen.PredictedAccuracy,
		MeasuredAccuracy:  advised.Accuracy,
	}
	j.Met = j.MeasuredSeconds <= j.SLOSeconds
	q.Labels = map[string]string{"phase": "random"}
	j.RandomBatchSize = d.otherThan(j.BatchSize)
	random, err := d.job(ctx, q, j.RandomBatchSize, d.random.Uint32())
	if err != nil {
		return demoJob{}, err
	}
	j.RandomMeasuredSeconds, j.RandomAccuracy = response(random), random.Accuracy
	j.RandomMet = j.RandomMeasuredSeconds <= j.SLOSeconds
	d.say("      took %s, %s; with batch size %d %s, %s",
		schemas.FormatSeconds(j.MeasuredSeconds), outcome(j.Met, j.MeasuredAccuracy),
		j.RandomBatchSize, schemas.FormatSeconds(j.RandomMeasuredSeconds),
		outcome(j.RandomMet, j.RandomAccuracy))
	return j, nil
}

// outcome says whether a job met its SLO, and its accuracy.
func outcome(met bool, accuracy *float64) string {
	text := "missed"
	if met {
		text = "met"
	}
	return text + " with accuracy " + report.Optional(accuracy, "%.3f")
}

// otherThan draws one of the other batch sizes.
func (d *demo) otherThan(batch int) int {
	others := slices.DeleteFunc(slices.Clone(demoBatchSizes), func(b int) bool {
		return b == batch
	})
	return others[d.random.IntN(len(others))]
}

// job runs the workload as any user's command is run: in a process of its own, under courier run.
// batch 0 takes the advised one.
func (d *demo) job(
	ctx context.Context, q schemas.JobRequest, batch int, seed uint32,
) (runner.Result, error) {
	program, err := os.Executable()
	if err != nil {
		return runner.Result{}, fmt.Errorf("find this program: %w", err)
	}
	node, err := schemas.LocalNodeName()
	if err != nil {
		return runner.Result{}, err
	}
	command := []string{
		program, "workload", "digits", "--network", "mlp",
		"--batch-size", "{batch}", "--cpus", "{cpus}", "--epochs", "{epochs}",
		"--augment", fmt.Sprint(d.copies),
		"--learning-rate", fmt.Sprintf("%.3g", sizedLearning/float64(d.copies)),
		"--seed", fmt.Sprint(seed),
	}
	printed := &tail{}
	r, err := runner.Run(ctx, runner.Options{
		Request:   demoRequest(q),
		Node:      node,
		BatchSize: batch,
		NoPTY:     true,
		Observer:  collector.NewObserver(slog.New(slog.DiscardHandler)),
		Format:    output.FormatJSON,
		SpoolDir:  filepath.Join(d.local.f.Data, "spool"),
		Command:   command,
		Stdout:    printed,
		Stderr:    printed,
		Connect:   func(context.Context) (*bus.Bus, error) { return d.local.bus, nil },
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return r, err
	}
	if r.ExitCode != 0 || len(r.Epochs) != demoEpochs {
		return r, fmt.Errorf("job %s ended with status %d after %d of %d epochs: %s",
			r.JobID, r.ExitCode, len(r.Epochs), demoEpochs, printed)
	}
	return r, d.awaitEnded(ctx, r.JobID)
}

// awaitEnded returns when the advisor knows that a job has ended: the next one does not run beside
// it.
func (d *demo) awaitEnded(ctx context.Context, job string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var s schemas.JobStatus
		q := schemas.JobStatusRequest{JobID: job}
		if err := d.local.bus.Request(ctx, schemas.SubjectJobStatus, &q, &s); err != nil {
			return fmt.Errorf("await the end of job %s: %w", job, err)
		}
		if s.State == schemas.StateFinished {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("await the end of job %s: %w", job, ctx.Err())
		}
	}
}

// tail keeps the end of what a job printed, for an error message.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2000 {
		t.b = t.b[len(t.b)-1000:]
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

func (d *demo) print(result demoResult) error {
	if d.c.Output == "json" {
		e := json.NewEncoder(d.w.stdout)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	t := tabwriter.NewWriter(d.w.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\n\t\tadvised\t\t\t\t\t\tat random\t\t\t\t")
	fmt.Fprintln(t, "SLO\tdecision\tbatch size\tpredicted\ttook\tmet\taccuracy\t"+
		"\tbatch size\ttook\tmet\taccuracy\t")
	for _, j := range result.Jobs {
		row := []string{
			schemas.FormatSeconds(j.SLOSeconds), string(j.Decision), fmt.Sprint(j.BatchSize),
			report.OptionalSeconds(j.PredictedSeconds), schemas.FormatSeconds(j.MeasuredSeconds),
			yes(j.Met), report.Optional(j.MeasuredAccuracy, "%.3f"), "",
			fmt.Sprint(j.RandomBatchSize),
			schemas.FormatSeconds(j.RandomMeasuredSeconds), yes(j.RandomMet),
			report.Optional(j.RandomAccuracy, "%.3f"),
		}
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.w.stdout, "\nCourier promised %d of %d SLOs and kept %d of its promises.\n",
		result.Promised, len(result.Jobs), result.Kept)
	fmt.Fprintf(d.w.stdout, "Mean accuracy, 0 for a job that missed its SLO:"+
		" %.3f as advised, %.3f at random.\n", result.Value, result.RandomValue)
	for _, s := range result.Skipped {
		fmt.Fprintln(d.w.stdout, "skipped:", s)
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
