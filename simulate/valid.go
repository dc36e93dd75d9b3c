package simulate

import (
	"fmt"
	"math"
	"slices"

	"courier/schemas"
)

// Limits of a world. Values beyond them are mistakes, or would let a simulation run too long.
const (
	maxNodes         = 64
	maxFamilies      = 64
	maxEpochs        = 1000
	maxLevels        = 32 // length of a list
	maxSamples       = 1 << 40
	minEpoch         = 0.001  // seconds
	maxEpoch         = 86_400 // seconds without neighbours
	maxContention    = 3      // exponent of neighbours and jobs
	maxWarmUpRuns    = 20_000
	maxSamplesPerGap = 10_000 // number of samples of a node between two submissions
)

func (w *World) validate() error {
	if err := w.validateNodes(); err != nil {
		return err
	}
	for _, f := range []struct {
		field              string
		value, least, most float64
	}{
		{"load", w.Load, 0.01, 4},
		{"noise.run_ratio", w.Noise.RunRatio, 0, 1}, {
			"noise.epoch_ratio",
			w.Noise.EpochRatio,
			0,
			1,
		}, {"noise.accuracy", w.Noise.Accuracy, 0, 1},
		{"slo.least_ratio", w.SLO.LeastRatio, 0.01, 1000}, {
			"slo.most_ratio",
			w.SLO.MostRatio,
			w.SLO.LeastRatio,
			1000,
		},
		{"sample_seconds", w.SampleSeconds, 1, 20},
	} {
		if err := between(f.field, f.value, f.least, f.most); err != nil {
			return err
		}
	}
	if err := counts("warm_up.jobs_at_once", w.WarmUp.JobsAtOnce, 64); err != nil {
		return err
	}
	if err := w.validateDrift(); err != nil {
		return err
	}
	if err := length("families", len(w.Families), maxFamilies); err != nil {
		return err
	}
	for i := range w.Families {
		if err := w.Families[i].validate(fmt.Sprintf("families[%d]", i)); err != nil {
			return err
		}
		if err := w.validateFit(i); err != nil {
			return err
		}
		if slices.ContainsFunc(w.Families[:i], func(f Family) bool {
			return f.Model == w.Families[i].Model
		}) {
			return schemas.Invalid(fmt.Sprintf("families[%d].model", i), "%q is given twice",
				w.Families[i].Model)
		}
	}
	if err := w.validateWarmUp(); err != nil {
		return err
	}
	if samples := w.gapSeconds() / w.SampleSeconds; samples > maxSamplesPerGap {
		return schemas.Invalid("load",
			"%g: %.0f samples of a node would pass between two submissions, at most %d may",
			w.Load, samples, maxSamplesPerGap)
	}
	return nil
}

func (w *World) validateNodes() error {
	if err := length("nodes", len(w.Nodes), maxNodes); err != nil {
		return err
	}
	for i, n := range w.Nodes {
		field := fmt.Sprintf("nodes[%d]", i)
		if !schemas.ValidToken(n.Name) {
			return schemas.Invalid(field+".name", "%q: want 1 to 64 of a-z 0-9 _ -", n.Name)
		}
		if slices.ContainsFunc(w.Nodes[:i], func(o WorldNode) bool { return o.Name == n.Name }) {
			return schemas.Invalid(field+".name", "%q is given twice", n.Name)
		}
		if n.Cores < 1 || n.Cores > schemas.MaxCPUs {
			return schemas.Invalid(field+".cores", "%d is not between 1 and %d", n.Cores,
				schemas.MaxCPUs)
		}
	}
	return nil
}

func (w *World) validateDrift() error {
	if len(w.Drift) > maxLevels {
		return schemas.Invalid("drift", "%d entries, want at most %d", len(w.Drift), maxLevels)
	}
	for i, d := range w.Drift {
		field := fmt.Sprintf("drift[%d]", i)
		if err := between(field+".after_seconds", d.AfterSeconds, 0, 1e9); err != nil {
			return err
		}
		if err := between(field+".factor", d.Factor, 0.01, 100); err != nil {
			return err
		}
		if d.Node != "" && !slices.ContainsFunc(w.Nodes, func(n WorldNode) bool {
			return n.Name == d.Node
		}) {
			return schemas.Invalid(field+".node", "%q is not a node of this world", d.Node)
		}
	}
	return nil
}

// validateFit checks a family against the rest of the world.
func (w *World) validateFit(i int) error {
	f, most := &w.Families[i], uint32(0)
	for _, n := range w.Nodes {
		most = max(most, n.Cores)
	}
	for k, list := range f.CPUs {
		field := fmt.Sprintf("families[%d].cpus[%d]", i, k)
		if fewest := slices.Min(list); fewest > int(most) {
			return schemas.Invalid(field, "no node has %d cores", fewest)
		}
		q := schemas.JobRequest{
			Model:           f.Model,
			TrainingSamples: f.TrainingSamples,
			CPUs:            list,
			BatchSizes:      f.BatchSizes,
			Epochs:          slices.Max(f.Epochs),
		}
		if err := q.Validate(); err != nil {
			return schemas.Invalid(field, "not valid in a request: %v", err)
		}
		if slo := w.SLO.MostRatio * f.fastest(&q); slo > schemas.MaxSLO.Seconds() {
			return schemas.Invalid("slo.most_ratio",
				"an SLO of model %s would be %g s, more than a year", f.Model, slo)
		}
	}
	return nil
}

// validateWarmUp limits the length of the history.
func (w *World) validateWarmUp() error {
	least := slices.MinFunc(w.Nodes, func(a, b WorldNode) int {
		return int(a.Cores) - int(b.Cores)
	}).Cores
	runs, seconds := 0.0, 0.0
	for _, atOnce := range w.WarmUp.JobsAtOnce {
		for i := range w.Families {
			f := &w.Families[i]
			cpus := f.cpuLevels()
			runs += float64(len(f.BatchSizes) * len(cpus))
			for _, c := range cpus {
				slower := f.EpochSeconds.contention(uint32(c), atOnce, atOnce*w.maxCPUs(), least)
				for _, b := range f.BatchSizes {
					seconds += f.StartupSeconds +
						float64(slices.Max(f.Epochs))*slower*f.EpochSeconds.alone(uint32(b),
							uint32(c))
				}
			}
		}
	}
	if runs > maxWarmUpRuns {
		return schemas.Invalid("warm_up.jobs_at_once",
			"the design has %.0f runs, at most %d may be", runs, maxWarmUpRuns)
	}
	if seconds > maxPlaySeconds {
		return schemas.Invalid("warm_up.jobs_at_once",
			"the design may last %g s, at most %g may it", seconds, maxPlaySeconds)
	}
	return nil
}

// maxCPUs returns the largest number of CPUs of any job.
func (w *World) maxCPUs() int {
	most := 0
	for i := range w.Families {
		most = max(most, slices.Max(slices.Concat(w.Families[i].CPUs...)))
	}
	return most
}

func (f *Family) validate(field string) error {
	if f.Model == "" || len(f.Model) > 256 {
		return schemas.Invalid(field+".model", "want a name of 1 to 256 bytes")
	}
	if err := between(field+".share", f.Share, 1e-6, 1e6); err != nil {
		return err
	}
	if f.TrainingSamples < 1 || f.TrainingSamples > maxSamples {
		return schemas.Invalid(field+".training_samples", "%d is not between 1 and %d",
			f.TrainingSamples, maxSamples)
	}
	if err := counts(field+".epochs", f.Epochs, maxEpochs); err != nil {
		return err
	}
	if err := counts(field+".batch_sizes", f.BatchSizes, schemas.MaxBatchSize); err != nil {
		return err
	}
	if err := length(field+".cpus", len(f.CPUs), maxLevels); err != nil {
		return err
	}
	for i, list := range f.CPUs {
		if err := counts(fmt.Sprintf("%s.cpus[%d]", field, i), list, schemas.MaxCPUs); err != nil {
			return err
		}
		if n := len(list) * len(f.BatchSizes); n > schemas.MaxCandidates {
			return schemas.Invalid(fmt.Sprintf("%s.cpus[%d]", field, i),
				"with the batch sizes these are %d candidates, more than %d", n,
				schemas.MaxCandidates)
		}
	}
	if err := between(field+".startup_seconds", f.StartupSeconds, 0, maxEpoch); err != nil {
		return err
	}
	return f.validateLaws(field)
}

func (f *Family) validateLaws(field string) error {
	l := &f.EpochSeconds
	for _, c := range []struct {
		name        string
		value, most float64
	}{
		{"constant", l.Constant, 20},
		{"batch", l.Batch, 20},
		{"cpus", l.CPUs, 20},
		{"inverse_cpus", l.InverseCPUs, 20},
		{"batch_cpus", l.BatchCPUs, 20},
	} {
		if err := between(field+".epoch_seconds."+c.name, c.value, -c.most, c.most); err != nil {
			return err
		}
	}
	if err := between(field+".epoch_seconds.jobs", l.Jobs, 0, maxContention); err != nil {
		return err
	}
	err := between(field+".epoch_seconds.neighbours", l.Neighbours, 0, maxContention)
	if err != nil {
		return err
	}
	for _, batch := range f.BatchSizes {
		for _, cpus := range f.cpuLevels() {
			if s := l.alone(uint32(batch), uint32(cpus)); !(s >= minEpoch && s <= maxEpoch) {
				return schemas.Invalid(field+".epoch_seconds",
					"batch size %d on %d CPUs takes %g s, not between %g and %d", batch, cpus, s,
					minEpoch, maxEpoch)
			}
		}
	}
	if err := between(field+".accuracy.constant", f.Accuracy.Constant, -20, 20); err != nil {
		return err
	}
	return between(field+".accuracy.iterations", f.Accuracy.Iterations, -20, 0)
}

// cpuLevels returns all numbers of CPUs that jobs of the family may have.
func (f *Family) cpuLevels() []int {
	levels := slices.Concat(f.CPUs...)
	slices.Sort(levels)
	return slices.Compact(levels)
}

func between(field string, value, least, most float64) error {
	if math.IsNaN(value) || value < least || value > most {
		return schemas.Invalid(field, "%g is not between %g and %g", value, least, most)
	}
	return nil
}

func length(field string, n, most int) error {
	if n < 1 || n > most {
		return schemas.Invalid(field, "%d entries, want 1 to %d", n, most)
	}
	return nil
}

// counts checks that numbers are distinct and from 1 to limit.
func counts(field string, list []int, limit int) error {
	if err := length(field, len(list), maxLevels); err != nil {
		return err
	}
	for i, n := range list {
		if n < 1 || n > limit {
			return schemas.Invalid(field, "%d is not between 1 and %d", n, limit)
		}
		if slices.Contains(list[:i], n) {
			return schemas.Invalid(field, "%d is given twice", n)
		}
	}
	return nil
}
