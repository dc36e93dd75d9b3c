package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"

	"courier/schemas"
	"courier/services"

	"golang.org/x/sync/errgroup"
)

// The sequence measures each batch size several times on one CPU, to estimate the noise of the
// machine.
// The overlapping jobs need a full factorial design.
var (
	sequenceBatchSizes  = []int{4, 8, 16, 32, 64, 128}
	factorialBatchSizes = []int{8, 16, 32, 64, 128}
	factorialCPUs       = []int{1, 2}
)

// sequenceRounds is the number of runs of each batch size.
const sequenceRounds = 3

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

// designPoint is one configuration of an experiment: equal jobs that run at the same time.
type designPoint struct{ batch, cpus, jobs int }

func (p designPoint) String() string {
	text := fmt.Sprintf("batch size %d on %s", p.batch, schemas.FormatCPUs(uint32(p.cpus)))
	if p.jobs > 1 {
		text += fmt.Sprintf(", %d at the same time", p.jobs)
	}
	return text
}

// replicated has each batch size once per round, in random order, so that a slow minute of the
// machine does not affect only one of them.
func (d *demo) replicated() []designPoint {
	var all []designPoint
	for range sequenceRounds {
		round := len(all)
		for _, batch := range sequenceBatchSizes {
			all = append(all, designPoint{batch, 1, 1})
		}
		d.shuffle(all[round:])
	}
	return all
}

// factorial is the full factorial design in random order.
func (d *demo) factorial() []designPoint {
	var all []designPoint
	for jobs := 1; jobs <= maxOverlapping; jobs++ {
		for _, cpus := range factorialCPUs {
			for _, batch := range factorialBatchSizes {
				all = append(all, designPoint{batch, cpus, jobs})
			}
		}
	}
	d.shuffle(all)
	return all
}

func (d *demo) shuffle(all []designPoint) {
	d.random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
}

// responseTimes are the seconds from submission to end of the jobs of each design point.
type responseTimes map[designPoint][]float64

// all returns the times of all jobs.
func (r responseTimes) all() []float64 {
	return slices.Concat(slices.Collect(maps.Values(r))...)
}

// typicalTime is the geometric mean of the times of the jobs with a batch size, in seconds.
type typicalTime struct {
	batch   int
	seconds float64
}

// typical returns the typical time of each design point, the fastest first.
func (r responseTimes) typical() []typicalTime {
	var all []typicalTime
	for p, seconds := range r {
		mean, _ := logMoments(seconds)
		all = append(all, typicalTime{p.batch, math.Exp(mean)})
	}
	slices.SortFunc(all, func(a, b typicalTime) int { return cmp.Compare(a.seconds, b.seconds) })
	return all
}

// noise is the standard deviation of the logarithm of the time of equal jobs, pooled over design
// points.
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

// measure chooses the size of a job for this machine and runs every point of a design.
func (d *demo) measure(ctx context.Context, design []designPoint) (responseTimes, error) {
	d.printf("")
	d.printf("1. Measure: there are no runs of the model %s yet", modelName)
	if err := d.sizeJob(ctx); err != nil {
		return nil, fmt.Errorf("size the job for this machine: %w", err)
	}
	d.printf("   A job trains for %d epochs with %d distorted copies of each image,"+
		" about %s on this machine.", jobEpochs, d.copies, schemas.FormatSeconds(targetJobSeconds))

	times := responseTimes{}
	bar := services.NewProgressBar(d.o.Stderr, len(design))
	for i, p := range design {
		bar.Draw(i, p.String())
		seconds, err := d.runPoint(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", p, err)
		}
		times[p] = append(times[p], seconds...)
	}
	bar.Draw(len(design), "done")
	bar.End()
	return times, nil
}

// runPoint runs the jobs of a design point at the same time.
func (d *demo) runPoint(ctx context.Context, p designPoint) ([]float64, error) {
	seconds := make([]float64, p.jobs)
	group, jobs := errgroup.WithContext(ctx)
	for k := range p.jobs {
		seed := d.random.Uint32()
		group.Go(func() error {
			q := schemas.JobRequest{
				CPUs:   schemas.CPUs{p.cpus},
				Labels: map[string]string{"phase": "experiment"},
			}
			r, err := d.runJob(jobs, q, p.batch, seed)
			seconds[k] = responseSeconds(r)
			return err
		})
	}
	return seconds, group.Wait()
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
	c := exec.CommandContext(ctx, program, "workload", "digits", "--network", "mlp",
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
