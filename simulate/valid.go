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

// bound is a number of a world with its limits.
type bound struct {
	field              string
	value, least, most float64
}

// within returns an error that names the first field beyond its limits; prefix precedes its name.
func within(prefix string, bounds ...bound) error {
	for _, b := range bounds {
		if math.IsNaN(b.value) || b.value < b.least || b.value > b.most {
			return schemas.Invalid(prefix+b.field, "%g is not between %g and %g", b.value, b.least,
				b.most)
		}
	}
	return nil
}

// counts checks that a list has 1 to maxLevels distinct numbers from 1 to limit.
func counts(field string, list []int, limit int) error {
	if len(list) < 1 || len(list) > maxLevels {
		return schemas.Invalid(field, "%d entries, want 1 to %d", len(list), maxLevels)
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

func (w *World) validate() error {
	if err := w.validateNodes(); err != nil {
		return err
	}
	err := within("",
		bound{"load", w.Load, 0.01, 4},
		bound{"noise.run_ratio", w.Noise.RunRatio, 0, 1},
		bound{"noise.epoch_ratio", w.Noise.EpochRatio, 0, 1},
		bound{"noise.accuracy", w.Noise.Accuracy, 0, 1},
		bound{"slo.least_ratio", w.SLO.LeastRatio, 0.01, 1000},
		bound{"slo.most_ratio", w.SLO.MostRatio, w.SLO.LeastRatio, 1000},
		bound{"sample_seconds", w.SampleSeconds, 1, 20},
		bound{"families", float64(len(w.Families)), 1, maxFamilies},
	)
	if err != nil {
		return err
	}
	if err := counts("warm_up.jobs_at_once", w.WarmUp.JobsAtOnce, 64); err != nil {
		return err
	}
	for i := range w.Families {
		f, field := &w.Families[i], fmt.Sprintf("families[%d].", i)
		isSame := func(other Family) bool { return other.Model == f.Model }
		if slices.ContainsFunc(w.Families[:i], isSame) {
			return schemas.Invalid(field+"model", "%q is given twice", f.Model)
		}
		if err := f.validate(field); err != nil {
			return err
		}
		for k, cpus := range f.CPUs {
			if err := w.validateRequest(f, fmt.Sprintf("%scpus[%d]", field, k), cpus); err != nil {
				return err
			}
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
	err := within("",
		bound{"nodes", float64(len(w.Nodes)), 1, maxNodes},
		bound{"drift", float64(len(w.Drift)), 0, maxLevels})
	if err != nil {
		return err
	}
	names := []string{""} // a drift without a name is of all nodes
	for i, n := range w.Nodes {
		field := fmt.Sprintf("nodes[%d].", i)
		err := within(field, bound{"cores", float64(n.Cores), 1, schemas.MaxCPUs})
		switch {
		case err != nil:
			return err
		case !schemas.ValidToken(n.Name):
			return schemas.Invalid(field+"name", "%q: want 1 to 64 of a-z 0-9 _ -", n.Name)
		case slices.Contains(names, n.Name):
			return schemas.Invalid(field+"name", "%q is given twice", n.Name)
		}
		names = append(names, n.Name)
	}
	for i, d := range w.Drift {
		field := fmt.Sprintf("drift[%d].", i)
		err := within(field,
			bound{"after_seconds", d.AfterSeconds, 0, maxPlaySeconds},
			bound{"factor", d.Factor, 0.01, 100})
		switch {
		case err != nil:
			return err
		case !slices.Contains(names, d.Node):
			return schemas.Invalid(field+"node", "%q is not a node of this world", d.Node)
		}
	}
	return nil
}

// validateRequest checks the requests of a family with a list of CPUs.
func (w *World) validateRequest(f *Family, field string, cpus []int) error {
	fits := func(n WorldNode) bool { return int(n.Cores) >= slices.Min(cpus) }
	if !slices.ContainsFunc(w.Nodes, fits) {
		return schemas.Invalid(field, "no node has %d cores", slices.Min(cpus))
	}
	q := schemas.JobRequest{
		Model:           f.Model,
		TrainingSamples: f.TrainingSamples,
		CPUs:            cpus,
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
	return nil
}

func (f *Family) validate(field string) error {
	if f.Model == "" || len(f.Model) > 256 {
		return schemas.Invalid(field+"model", "want a name of 1 to 256 bytes")
	}
	l := &f.EpochSeconds
	err := within(field,
		bound{"share", f.Share, 1e-6, 1e6},
		bound{"training_samples", float64(f.TrainingSamples), 1, maxSamples},
		bound{"cpus", float64(len(f.CPUs)), 1, maxLevels},
		bound{"startup_seconds", f.StartupSeconds, 0, maxEpoch},
		bound{"epoch_seconds.constant", l.Constant, -20, 20},
		bound{"epoch_seconds.batch", l.Batch, -20, 20},
		bound{"epoch_seconds.cpus", l.CPUs, -20, 20},
		bound{"epoch_seconds.inverse_cpus", l.InverseCPUs, -20, 20},
		bound{"epoch_seconds.batch_cpus", l.BatchCPUs, -20, 20},
		bound{"epoch_seconds.jobs", l.Jobs, 0, maxContention},
		bound{"epoch_seconds.neighbours", l.Neighbours, 0, maxContention},
		bound{"accuracy.constant", f.Accuracy.Constant, -20, 20},
		bound{"accuracy.iterations", f.Accuracy.Iterations, -20, 0},
	)
	if err != nil {
		return err
	}
	if err := counts(field+"epochs", f.Epochs, maxEpochs); err != nil {
		return err
	}
	if err := counts(field+"batch_sizes", f.BatchSizes, schemas.MaxBatchSize); err != nil {
		return err
	}
	for i, cpus := range f.CPUs {
		if err := counts(fmt.Sprintf("%scpus[%d]", field, i), cpus, schemas.MaxCPUs); err != nil {
			return err
		}
	}
	for _, batch := range f.BatchSizes {
		for _, cpus := range f.cpuLevels() {
			seconds := l.alone(uint32(batch), uint32(cpus))
			if err := within(field, bound{"epoch_seconds", seconds, minEpoch, maxEpoch}); err != nil {
				return err
			}
		}
	}
	return nil
}

// validateWarmUp limits the length of the history.
func (w *World) validateWarmUp() error {
	const field = "warm_up.jobs_at_once"
	runs, most := 0, 0
	for i := range w.Families {
		levels := w.Families[i].cpuLevels()
		runs += len(w.WarmUp.JobsAtOnce) * len(w.Families[i].BatchSizes) * len(levels)
		most = max(most, slices.Max(levels))
	}
	if runs > maxWarmUpRuns {
		return schemas.Invalid(field, "the design has %d runs, at most %d may be", runs, maxWarmUpRuns)
	}
	least := w.Nodes[0].Cores
	for _, n := range w.Nodes {
		least = min(least, n.Cores)
	}
	seconds := 0.0
	for _, atOnce := range w.WarmUp.JobsAtOnce {
		for _, j := range w.design() {
			c, l := candidates(&j.Request)[0], &j.family.EpochSeconds
			epoch := l.alone(c.batch, c.cpus) * l.contention(c.cpus, atOnce, atOnce*most, least)
			seconds += j.family.StartupSeconds + float64(j.Request.Epochs)*epoch
		}
	}
	if seconds > maxPlaySeconds {
		return schemas.Invalid(field, "the design may last %g s, at most %g may it", seconds,
			maxPlaySeconds)
	}
	return nil
}

// cpuLevels returns all numbers of CPUs that jobs of the family may have.
func (f *Family) cpuLevels() []int {
	levels := slices.Concat(f.CPUs...)
	slices.Sort(levels)
	return slices.Compact(levels)
}
