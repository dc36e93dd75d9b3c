// Package advisortest fits the regressors of an advisor to the law of an imaginary node, for tests.
package advisortest

import (
	"context"

	"courier/regress"
	"courier/schemas"
)

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

// Fit returns regressors that know the law of the node, for each target.
func (n *Node) Fit(ctx context.Context) (map[string]*regress.Regressor, error) {
	all := map[string]*regress.Regressor{}
	for _, target := range schemas.Targets() {
		transform := regress.Log
		if target == schemas.TargetAccuracy {
			transform = regress.None
		}
		r, err := regress.FitForest(ctx, n.measurements(target), regress.ForestOptions{
			Trees: 50, MaxDepth: 12, Criterion: regress.Absolute, Seed: 1, Transform: transform,
		})
		if err != nil {
			return nil, err
		}
		all[target] = r
	}
	return all, nil
}

// measurements returns the epochs of jobs with each number of CPUs and of co-located processes.
func (n *Node) measurements(target string) *regress.Dataset {
	encoder := schemas.NewEncoder(target, []string{n.Model}, []schemas.Hardware{n.Hardware})
	d := &regress.Dataset{TargetName: target}
	for _, c := range encoder.Columns() {
		d.Features = append(d.Features, regress.Feature{
			Name:       c.String(),
			Continuous: c.Continuous(),
			Alone:      c.DescribesNode(),
			Levels:     encoder.Levels(c),
		})
		d.Columns = append(d.Columns, nil)
	}
	for _, cpus := range n.CPUs {
		for _, other := range n.Others {
			processes := float64(cpus) + other
			if processes > n.MaxProcesses {
				continue
			}
			for jobs := 1; jobs <= max(2, n.MaxJobs); jobs++ {
				if isAlone := other == 0; isAlone == (jobs == 1) && float64(jobs-1) <= other {
					n.measure(d, encoder, target, cpus, processes, float64(jobs))
				}
			}
		}
	}
	return d
}

// measure adds epochs of a job.
func (n *Node) measure(
	d *regress.Dataset, encoder *schemas.Encoder, target string, cpus uint32, processes, jobs float64,
) {
	row := make([]float64, len(d.Columns))
	for k := range 12 {
		encoder.Fill(row, &schemas.Features{
			BatchSize: n.BatchSize, CPUs: cpus, EpochsDone: uint32(k + 1), Node: encoder.Node(n.Hardware),
			Load: schemas.Load{
				ConcurrentJobs:   jobs,
				Processes:        processes,
				ProcessesPerCore: processes / float64(n.Hardware.Cores),
				StableTimeRatio:  1,
			},
		})
		for i := range row {
			d.Columns[i] = append(d.Columns[i], row[i])
		}
		value := n.EpochSeconds(float64(cpus), processes) * (1 + 0.002*float64(k%3-1))
		switch target {
		case schemas.TargetStartup:
			value = n.StartupSeconds * (1 + 0.01*float64(k%3-1))
		case schemas.TargetAccuracy:
			value = n.Accuracy(float64(k + 1))
		}
		d.Target, d.Group = append(d.Target, value), append(d.Group, len(d.Group))
	}
}
