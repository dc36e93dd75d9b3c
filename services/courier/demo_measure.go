package main

import (
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

	"courier/runner"
	"courier/schemas"

	"golang.org/x/sync/errgroup"
)

// What the demo measures: in the short story each batch size several times on one CPU, so that
// the noise of the machine is known; else a full factorial design.
var (
	demoBatchSizes      = []int{4, 8, 16, 32, 64, 128}
	factorialBatchSizes = []int{8, 16, 32, 64, 128}
	factorialCPUs       = []int{1, 2}
)

const (
	demoRounds = 3

	demoModel  = "digits-mlp"
	demoEpochs = 8
)

// The size of a job is chosen for the machine as it is just now.
const (
	demoJobSeconds = 3.5 // of a job on one CPU, about
	sizingBatch    = 16
	sizingCopies   = 10
	sizingSeconds  = 2.0 // of epochs that are measured for it
	fewestCopies   = 4
	mostCopies     = 1000

	// sizedLearning over the copies of an image is the learning rate: after all epochs a network
	// has come as far on a fast machine as on a slow one, with small batches farther than with
	// large ones.
	sizedLearning = 0.0035
)

// setting is one cell of a design: jobs that run at once, alike.
type setting struct{ batch, cpus, jobs int }

func (s setting) String() string {
	text := fmt.Sprintf("batch size %d on %s", s.batch, schemas.FormatCPUs(uint32(s.cpus)))
	if s.jobs > 1 {
		text += fmt.Sprintf(", %d at once", s.jobs)
	}
	return text
}

// replicated runs each batch size once a round, in random order: so a slow minute of the machine
// does not fall on one of them alone.
func (d *demo) replicated() []setting {
	var all []setting
	for range demoRounds {
		round := len(all)
		for _, batch := range demoBatchSizes {
			all = append(all, setting{batch, 1, 1})
		}
		d.shuffle(all[round:])
	}
	return all
}

// factorial is the full factorial in random order.
func (d *demo) factorial() []setting {
	var all []setting
	for jobs := 1; jobs <= crowdAtOnce; jobs++ {
		for _, cpus := range factorialCPUs {
			for _, batch := range factorialBatchSizes {
				all = append(all, setting{batch, cpus, jobs})
			}
		}
	}
	d.shuffle(all)
	return all
}

func (d *demo) shuffle(all []setting) {
	d.random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
}

// measured holds the seconds from submission to end of the jobs of each setting.
type measured map[setting][]float64

// all are the times of all jobs.
func (m measured) all() []float64 {
	return slices.Concat(slices.Collect(maps.Values(m))...)
}

// typicalTime is the geometric mean of the seconds of the jobs with a batch size.
type typicalTime struct {
	batch   int
	seconds float64
}

// typical returns the typical time of each setting, the fastest first.
func (m measured) typical() []typicalTime {
	var all []typicalTime
	for s, seconds := range m {
		mean, _ := logMoments(seconds)
		all = append(all, typicalTime{s.batch, math.Exp(mean)})
	}
	slices.SortFunc(all, func(a, b typicalTime) int {
		if a.seconds < b.seconds {
			return -1
		}
		return 1
	})
	return all
}

// noise is the standard deviation of the log time of jobs of one setting, pooled over settings.
func (m measured) noise() float64 {
	squares, freedom := 0.0, 0
	for _, seconds := range m {
		_, s := logMoments(seconds)
		squares, freedom = squares+s, freedom+len(seconds)-1
	}
	return math.Sqrt(squares / float64(max(freedom, 1)))
}

// logMoments returns the mean of the logarithms, and the sum of squares about it.
func logMoments(values []float64) (mean, squares float64) {
	for i, v := range values {
		d := math.Log(v) - mean
		mean += d / float64(i+1)
		squares += d * (math.Log(v) - mean)
	}
	return mean, squares
}

// measure sizes the job for the machine and runs every setting of a design.
func (d *demo) measure(ctx context.Context, design []setting) (measured, error) {
	d.say("")
	d.say("1. Measure: nothing is known yet of the model %s", demoModel)
	if err := d.size(ctx); err != nil {
		return nil, fmt.Errorf("size the job for this machine: %w", err)
	}
	d.say("   A job trains for %d epochs with %d distorted copies of each image,"+
		" about %s on this machine.", demoEpochs, d.copies, schemas.FormatSeconds(demoJobSeconds))
	of := measured{}
	bar := newBar(d.w.stderr, len(design))
	for i, s := range design {
		bar.draw(i, s.String())
		seconds, err := d.cell(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", s, err)
		}
		of[s] = append(of[s], seconds...)
	}
	bar.draw(len(design), "done")
	bar.end()
	return of, nil
}

// cell runs the jobs of a setting at once.
func (d *demo) cell(ctx context.Context, s setting) ([]float64, error) {
	seconds := make([]float64, s.jobs)
	group, jobs := errgroup.WithContext(ctx)
	for k := range s.jobs {
		seed := d.random.Uint32()
		group.Go(func() error {
			q := schemas.JobRequest{
				CPUs: schemas.CPUs{s.cpus}, Labels: map[string]string{"phase": "experiment"},
			}
			r, err := d.job(jobs, q, s.batch, seed)
			seconds[k] = response(r)
			return err
		})
	}
	return seconds, group.Wait()
}

// response is the time that the SLO counts: from submission to the end.
func response(r runner.Result) float64 { return r.Ended.Sub(r.Submitted).Seconds() }

// sayTypical prints the typical times, and how much jobs of one batch size differ.
func (d *demo) sayTypical(typical []typicalTime, noise float64) {
	var text []string
	for _, t := range typical {
		text = append(text, fmt.Sprintf("%s with %d", schemas.FormatSeconds(t.seconds), t.batch))
	}
	d.say("   A job takes, by batch size: %s.", strings.Join(text, ", "))
	d.say("   Jobs with one batch size differ by %.1f %% (standard deviation):"+
		" the noise of this machine.", 100*noise)
}

// size chooses the copies of each image so that a job takes demoJobSeconds: it trains for a while and
// sees how long a copy takes.
func (d *demo) size(ctx context.Context) error {
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
	_ = c.Wait() // it was killed
	perCopy := seconds / epochs / (sizingCopies + 1)
	copies := demoJobSeconds/demoEpochs/perCopy - 1
	d.copies = int(min(max(copies, fewestCopies), mostCopies))
	return nil
}
