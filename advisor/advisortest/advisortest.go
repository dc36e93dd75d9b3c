// Package advisortest fits regressors on the runs of imaginary jobs, for tests. The trainer's own
// function fits them, and an advisor loads them from their files.
package advisortest

import (
	"context"
	"fmt"
	"time"

	"courier/bus"
	"courier/regress/treefile"
	"courier/schemas"
	"courier/trainer"
)

// Run is a finished run of a job under a constant load.
type Run struct {
	Model, Dataset string
	Node           string
	Hardware       schemas.Hardware // of the node; zero if unknown
	BatchSize      uint32
	CPUs           uint32
	Load           schemas.Load // of the node, this job included
	StartedAt      time.Time
	StartupSeconds float64 // before its first epoch; 0 if unknown
	Epochs         []Epoch
}

// Epoch is a pass of a run over its data.
type Epoch struct {
	Seconds  float64
	Accuracy float64 // on the validation set; 0 if it was not measured
}

// Files are the encoded files of a regressor.
type Files = trainer.Files

// Fit fits regressors of all targets on runs, which include those of the previous regressors, and returns
// their files by target.
func Fit(ctx context.Context, runs []Run, previous map[string]Files) (map[string]Files, error) {
	all := map[string]Files{}
	for _, target := range schemas.Targets() {
		var before *treefile.Manifest
		if files, found := previous[target]; found {
			file, err := treefile.Load(files.Model, files.Manifest)
			if err != nil {
				return nil, err
			}
			before = file.Manifest()
		}
		var err error
		examples := examplesOf(target, runs)
		if all[target], err = trainer.Fit(ctx, target, examples, before, trainer.Options{}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Promote stores the files of regressors, and makes them the champions.
func Promote(ctx context.Context, b *bus.Bus, all map[string]Files) error {
	for target, files := range all {
		model, err := b.PutArtifact(ctx, files.Model)
		if err != nil {
			return err
		}
		manifest, err := b.PutArtifact(ctx, files.Manifest)
		if err != nil {
			return err
		}
		c := schemas.Champion{Target: target, ModelDigest: model, ManifestDigest: manifest}
		if _, err := b.SetChampion(ctx, c, 0); err != nil {
			return err
		}
	}
	return nil
}

// examplesOf returns what a target learns from runs.
func examplesOf(target string, runs []Run) (all []trainer.Example) {
	for i := range runs {
		job := fmt.Sprint("run-", i)
		if r := &runs[i]; target == schemas.TargetStartup {
			all = r.appendStartup(all, job)
		} else {
			all = r.appendEpochs(all, job, target)
		}
	}
	return all
}

// example returns an example without a value, of a measurement that ended some seconds after the
// start of the run.
func (r *Run) example(job string, endSeconds float64) trainer.Example {
	load := r.Load
	if r.Hardware.Cores > 0 {
		load.ProcessesPerCore = load.Processes / float64(r.Hardware.Cores)
	}
	total := r.StartupSeconds
	for _, e := range r.Epochs {
		total += e.Seconds
	}
	model, batch := schemas.LearnedAs(r.Model, r.BatchSize)
	return trainer.Example{
		Job:      job,
		Run:      1,
		Model:    model,
		Dataset:  r.Dataset,
		Nodes:    []string{r.Node},
		Hardware: r.Hardware,
		Features: schemas.Features{BatchSize: batch, CPUs: r.CPUs, Load: load},
		At:       after(r.StartedAt, endSeconds),
		EndedAt:  after(r.StartedAt, total),
	}
}

func after(t time.Time, seconds float64) time.Time {
	return t.Add(time.Duration(seconds * float64(time.Second)))
}

func (r *Run) appendStartup(all []trainer.Example, job string) []trainer.Example {
	if r.StartupSeconds == 0 {
		return all
	}
	x := r.example(job, r.StartupSeconds)
	x.Value, x.Seconds = r.StartupSeconds, r.StartupSeconds
	return append(all, x)
}

func (r *Run) appendEpochs(all []trainer.Example, job, target string) []trainer.Example {
	end := r.StartupSeconds
	for i, e := range r.Epochs {
		end += e.Seconds
		x := r.example(job, end)
		x.Features.EpochsDone, x.Seconds, x.Value = uint32(i+1), e.Seconds, e.Seconds
		if target == schemas.TargetAccuracy {
			if e.Accuracy == 0 {
				continue
			}
			x.Value = e.Accuracy
		}
		all = append(all, x)
	}
	return all
}

// Node is a node whose epoch times follow a law.
type Node struct {
	Hardware     schemas.Hardware
	Model        string // of all jobs
	BatchSize    uint32
	CPUs         []uint32  // that a job may have
	Others       []float64 // processes of its co-located jobs
	MaxProcesses float64   // of all jobs of the node; more are in no measurement
	MaxJobs      int       // that run at once; at least 2

	EpochSeconds   func(cpus, processes float64) float64 // processes includes those of the job itself
	StartupSeconds float64
	Accuracy       func(epochs float64) float64
}

// Fit returns the files of regressors that know the law of the node, by target.
func (n *Node) Fit(ctx context.Context) (map[string]Files, error) { return Fit(ctx, n.runs(), nil) }

// runs returns the runs of jobs with each number of CPUs and of co-located processes.
func (n *Node) runs() (all []Run) {
	for _, cpus := range n.CPUs {
		for _, other := range n.Others {
			processes := float64(cpus) + other
			if processes > n.MaxProcesses {
				continue
			}
			for jobs := 1; jobs <= max(2, n.MaxJobs); jobs++ {
				if isAlone := other == 0; isAlone != (jobs == 1) || float64(jobs-1) > other {
					continue
				}
				load := schemas.Load{ConcurrentJobs: float64(jobs), Processes: processes}
				for range runsOfConfiguration {
					all = append(all, n.run(len(all), cpus, load))
				}
			}
		}
	}
	return all
}

const (
	runsOfConfiguration = 3
	epochsOfRun         = 400
)

// run returns a run. Its epochs differ by 0.2 %.
func (n *Node) run(number int, cpus uint32, load schemas.Load) Run {
	r := Run{
		Model:          n.Model,
		Node:           "node-a",
		Hardware:       n.Hardware,
		BatchSize:      n.BatchSize,
		CPUs:           cpus,
		Load:           load,
		StartedAt:      time.Unix(1_780_000_000, 0).UTC().Add(time.Duration(number) * time.Hour),
		StartupSeconds: n.StartupSeconds * (1 + 0.01*float64(number%3-1)),
	}
	for k := range epochsOfRun {
		seconds := n.EpochSeconds(float64(cpus), load.Processes) * (1 + 0.002*float64(k%3-1))
		r.Epochs = append(r.Epochs, Epoch{seconds, n.Accuracy(float64(k + 1))})
	}
	return r
}
