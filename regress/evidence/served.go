package evidence

import (
	"math"
	"slices"

	"courier/regress/treefile"
)

// Columns of the files of regressors. The columns of foreign load are chosen by the trainer.
const (
	ColumnModel            = "model"
	ColumnNodeType         = "node_type"
	ColumnCPUs             = "cpus"
	ColumnConcurrentJobs   = "concurrent_jobs"
	ColumnProcessesPerCore = "processes_per_core"
	ColumnForeignCPU       = "foreign_cpu_ratio"
	ColumnForeignIOWait    = "foreign_io_wait_ratio"
	ColumnEpochs           = "epochs" // of times: the first so many; of accuracies: done
	ColumnBatchSize        = "batch_size"
)

// Row returns the row of a configuration and a number of epochs. model is the level of its model.
func Row(columns []treefile.Feature, model string, c *Configuration, epochs int) []float64 {
	row := make([]float64, len(columns))
	for i, column := range columns {
		switch column.Name {
		case ColumnModel:
			row[i] = float64(slices.Index(column.Levels, model))
		case ColumnNodeType:
			row[i] = float64(slices.Index(column.Levels, c.NodeType))
		case ColumnCPUs:
			row[i] = float64(c.CPUs)
		case ColumnConcurrentJobs:
			row[i] = c.ConcurrentJobs
		case ColumnProcessesPerCore:
			row[i] = c.ProcessesPerCore
		case ColumnForeignCPU:
			row[i] = c.ForeignCPURatio
		case ColumnForeignIOWait:
			row[i] = c.ForeignIOWaitRatio
		case ColumnEpochs:
			row[i] = float64(epochs)
		case ColumnBatchSize:
			row[i] = float64(c.BatchSize)
		}
	}
	return row
}

// FilePoint is a prediction in the file of a regressor: a configuration, a number of epochs, and the
// log of seconds or an accuracy.
type FilePoint struct {
	Configuration
	Epochs int
	Value  float64
}

// TimePoints returns the log seconds of the first epochs of each configuration at the points of its
// curve, and, a quarter octave of the batch size apart between them, at the ends of the curve.
func (p *Predictor) TimePoints() (all []FilePoint) {
	for _, key := range p.sortedSubjects() {
		t := p.subjects[key].time
		if t == nil {
			continue
		}
		seen := map[Configuration]bool{}
		for i := range t.model.Configurations {
			m := &t.model.Configurations[i]
			seen[m.Configuration] = true
			for k, n := range m.Points {
				all = append(all, FilePoint{m.Configuration, n, m.Location[k]})
			}
		}
		for i := range t.model.Configurations {
			m := &t.model.Configurations[i]
			r := t.reaches[m.NodeType]
			for _, batch := range quarterOctaves(exactPower(r.low[0]), exactPower(r.high[0])) {
				c := m.Configuration
				if c.BatchSize = batch; seen[c] {
					continue
				}
				seen[c] = true
				between := t.times(&c)
				for _, n := range slices.Compact([]int{1, m.Points[len(m.Points)-1]}) {
					all = append(all, FilePoint{c, n, between.total(n).location})
				}
			}
		}
	}
	return all
}

// quarterOctaves returns batch sizes above the smallest and below the largest one.
func quarterOctaves(smallest, largest int) (all []int) {
	const perOctave = 4
	last := perOctave * math.Log2(float64(largest))
	for q := math.Ceil(perOctave * math.Log2(float64(smallest))); q < last; q++ {
		all = append(all, int(math.Round(math.Exp2(q/perOctave))))
	}
	return all
}

// ServeTimes replaces the curves of the regressor by the log seconds of a file.
func (r *Regressor) ServeTimes(value func(c *Configuration, epochs int) (float64, error)) error {
	for i := range r.Subjects {
		t := r.Subjects[i].Time
		if t == nil {
			continue
		}
		for k := range t.Configurations {
			m := &t.Configurations[k]
			for x, n := range m.Points {
				y, err := value(&m.Configuration, n)
				if err != nil {
					return err
				}
				m.Location[x] = y
				if x > 0 { // a reader may have rounded
					m.Location[x] = max(m.Location[x], m.Location[x-1])
				}
			}
		}
	}
	return nil
}

// StartupPoints returns the log seconds of the start-up of each model on each node type.
func (p *Predictor) StartupPoints() (all []FilePoint) {
	for _, key := range p.sortedSubjects() {
		for _, u := range p.subjects[key].Startup {
			c := Configuration{Model: key.model, Dataset: key.dataset, NodeType: u.NodeType}
			all = append(all, FilePoint{c, 0, u.Location})
		}
	}
	return all
}

// ServeStartups replaces the start-ups of the regressor by the log seconds of a file.
func (r *Regressor) ServeStartups(value func(c *Configuration, epochs int) (float64, error)) error {
	for i := range r.Subjects {
		s := &r.Subjects[i]
		for k := range s.Startup {
			c := Configuration{Model: s.Model, Dataset: s.Dataset, NodeType: s.Startup[k].NodeType}
			y, err := value(&c, 0)
			if err != nil {
				return err
			}
			s.Startup[k].Location = y
		}
	}
	return nil
}

// AccuracyPoints returns the displayed accuracy of each batch size at the epochs at which a run had a
// record or ended, and a quarter octave apart between batch sizes.
func (p *Predictor) AccuracyPoints() (all []FilePoint) {
	for _, key := range p.sortedSubjects() {
		a := p.subjects[key].accuracy
		if a == nil {
			continue
		}
		for _, batch := range a.fileBatches() {
			c := Configuration{Model: key.model, Dataset: key.dataset, BatchSize: batch}
			for _, n := range a.fileEpochs(batch) {
				if x := a.predict(batch, n); x.Known {
					all = append(all, FilePoint{c, n, x.Mean})
				}
			}
		}
	}
	return all
}

// fileBatches returns the measured batch sizes, and others a quarter octave apart between them.
func (p *accuracyPredictor) fileBatches() (all []int) {
	for _, b := range p.batches {
		all = append(all, b.size)
	}
	all = append(all, quarterOctaves(all[0], all[len(all)-1])...)
	slices.Sort(all)
	return slices.Compact(all)
}

// fileEpochs returns the epochs at which the accuracy of a measured batch size may change; of others
// the grid of epochs.
func (p *accuracyPredictor) fileEpochs(batch int) (all []int) {
	if i, isMeasured := p.find(batch); isMeasured {
		for _, r := range p.batches[i].runs {
			for _, n := range append(slices.Clone(r.Epochs), r.Length) {
				all = append(all, max(n-1, 1), n, n+1)
			}
		}
	}
	for _, n := range epochGrid {
		if len(all) == 0 || n <= p.longest {
			all = append(all, n)
		}
		if n > p.longest {
			break
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sortedSubjects returns the subjects in order.
func (p *Predictor) sortedSubjects() []subject {
	all := make([]subject, 0, len(p.subjects))
	for key := range p.subjects {
		all = append(all, key)
	}
	slices.SortFunc(all, subject.compare)
	return all
}
