package evidence

import (
	"slices"
	"sort"

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
// curve.
func (p *Predictor) TimePoints() (all []FilePoint) {
	for _, key := range p.sortedSubjects() {
		t := p.subjects[key].Time
		if t == nil {
			continue
		}
		for i := range t.Configurations {
			m := &t.Configurations[i]
			for k, n := range m.Points {
				all = append(all, FilePoint{m.Configuration, n, m.Location[k]})
			}
		}
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

// AccuracyPoints returns the displayed accuracy of each measured batch size at the grid of epochs and at
// the ends of its runs.
func (p *Predictor) AccuracyPoints() (all []FilePoint) {
	for _, key := range p.sortedSubjects() {
		a := p.subjects[key].accuracy
		if a == nil {
			continue
		}
		for _, b := range a.batches {
			epochs := slices.Clone(epochGrid[:sort.SearchInts(epochGrid, a.longest)])
			for _, r := range b.runs {
				epochs = append(epochs, r.Length)
			}
			slices.Sort(epochs)
			c := Configuration{Model: key.model, Dataset: key.dataset, BatchSize: b.size}
			for _, n := range slices.Compact(epochs) {
				if x := a.predict(b.size, n); x.Known {
					all = append(all, FilePoint{c, n, x.Mean})
				}
			}
		}
	}
	return all
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
