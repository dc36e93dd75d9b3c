package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"

	"courier/schemas"
	"courier/services"
)

// Each batch size is measured several times, to estimate the noise of the machine.
var batchSizes = []int{4, 8, 16, 32, 64, 128}

// rounds is the number of runs of each batch size.
const rounds = 3

// The size of a job depends on the current speed of the machine.
const (
	targetJobSeconds = 3.5 // approximate duration of a job on one CPU
	sizingBatch      = 16
	sizingCopies     = 10
	sizingSeconds    = 2.0 // duration of the epochs that are measured for it
	minCopies        = 4
	maxCopies        = 1000

	// rateTimesCopies, divided by the number of copies, is the learning rate. So a network reaches
	// the same accuracy on a fast machine as on a slow one, and a higher one with small batches
	// than with large ones.
	rateTimesCopies = 0.0035
)

// design has each batch size once per round, in random order, so that a slow minute of the machine
// does not affect only one of them.
func (d *demo) design() []int {
	var all []int
	for range rounds {
		for _, i := range d.random.Perm(len(batchSizes)) {
			all = append(all, batchSizes[i])
		}
	}
	return all
}

// responseTimes are the seconds from submission to end of the jobs with each batch size.
type responseTimes map[int][]float64

// typicalTime is the geometric mean of the times of the jobs with a batch size, in seconds.
type typicalTime struct {
	batch   int
	seconds float64
}

// typical returns the typical time of each batch size, the fastest first.
func (r responseTimes) typical() []typicalTime {
	var all []typicalTime
	for batch, seconds := range r {
		mean, _ := logMoments(seconds)
		all = append(all, typicalTime{batch, math.Exp(mean)})
	}
	slices.SortFunc(all, func(a, b typicalTime) int { return cmp.Compare(a.seconds, b.seconds) })
	return all
}

// noise is the standard deviation of the logarithm of the time of equal jobs, pooled over batch
// sizes.
func (r responseTimes) noise() float64 {
	squares, freedom := 0.0, 0
	for _, seconds := range r {
		_, s := logMoments(seconds)
		squares, freedom = squares+s, freedom+len(seconds)-1
	}
	return math.Sqrt(squares / float64(max(freedom, 1)))
}

// logMoments returns the mean of the logarithms, and the sum of squared deviations from it.
func logMoments(values []float64) (mean, squares float64) {
	for i, v := range values {
		d := math.Log(v) - mean
		mean += d / float64(i+1)
		squares += d * (math.Log(v) - mean)
	}
	return mean, squares
}

// measure chooses the size of a job for this machine and runs all jobs of the design.
func (d *demo) measure(ctx context.Context) (responseTimes, error) {
	d.printf("")
	d.printf("1. Measure: there are no runs of the model %s yet", modelName)
	if err := d.sizeJob(ctx); err != nil {
		return nil, fmt.Errorf("size the job for this machine: %w", err)
	}
	d.printf("   A job trains for %d epochs with %d distorted copies of each image,"+
		" about %s on this machine.", jobEpochs, d.copies, schemas.FormatSeconds(targetJobSeconds))

	times, design := responseTimes{}, d.design()
	bar := services.NewProgressBar(d.o.Stderr, len(design))
	for i, batch := range design {
		bar.Draw(i, fmt.Sprintf("batch size %d", batch))
		q := schemas.JobRequest{Labels: map[string]string{"phase": "experiment"}}
		r, err := d.runJob(ctx, q, batch, d.random.Uint32())
		if err != nil {
			return nil, fmt.Errorf("measure batch size %d: %w", batch, err)
		}
		times[batch] = append(times[batch], responseSeconds(r))
	}
	bar.Draw(len(design), "done")
	bar.End()
	return times, nil
}

// printTypical prints the typical times, and how much the times of equal jobs differ.
func (d *demo) printTypical(typical []typicalTime, noise float64) {
	var text []string
	for _, t := range typical {
		text = append(text, fmt.Sprintf("%d: %s", t.batch, schemas.FormatSeconds(t.seconds)))
	}
	d.printf("   Typical time of a job by batch size: %s.", strings.Join(text, ", "))
	d.printf("   Jobs with the same batch size differ by %.1f %% (standard deviation):"+
		" the noise of this machine.", 100*noise)
}

// sizeJob chooses the number of copies of each image so that a job takes targetJobSeconds. It
// trains for sizingSeconds to measure the time of a copy.
func (d *demo) sizeJob(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, program, "workload", "digits",
		"--batch-size", fmt.Sprint(sizingBatch), "--cpus", "1", "--epochs", "100000",
		"--augment", fmt.Sprint(sizingCopies))
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}

	lines, seconds, epochs := json.NewDecoder(out), 0.0, 0.0
	for seconds < sizingSeconds {
		var line struct{ Seconds float64 }
		if err := lines.Decode(&line); err != nil {
			return errors.Join(err, c.Wait())
		}
		seconds, epochs = seconds+line.Seconds, epochs+1
	}
	cancel()
	_ = c.Wait() // The cancelled context killed it.

	perCopy := seconds / epochs / (sizingCopies + 1)
	copies := targetJobSeconds/jobEpochs/perCopy - 1
	d.copies = int(min(max(copies, minCopies), maxCopies))
	return nil
}
