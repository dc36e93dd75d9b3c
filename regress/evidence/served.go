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

// curves returns the curves of times and of start-ups, in order.
func (r *Regressor) curves() (all []*ConfigurationTimes) {
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if s.Time != nil {
			for k := range s.Time.Configurations {
				all = append(all, &s.Time.Configurations[k])
			}
		}
		for k := range s.Startup {
			all = append(all, &s.Startup[k])
		}
	}
	return all
}

// TimePoints returns the log seconds of the first epochs of each configuration, or of the start-up of
// each model on each node type, at the points of the curves.
func (r *Regressor) TimePoints() (all []FilePoint) {
	for _, c := range r.curves() {
		for k, n := range c.Points {
			all = append(all, FilePoint{c.Configuration, n, c.Location[k]})
		}
	}
	return all
}

// ServeTimes replaces the curves of the regressor by the log seconds of a file.
func (r *Regressor) ServeTimes(value func(c *Configuration, epochs int) (float64, error)) error {
	for _, c := range r.curves() {
		for k, n := range c.Points {
			y, err := value(&c.Configuration, n)
			if err != nil {
				return err
			}
			c.Location[k] = y
			if k > 0 { // a reader may have rounded
				c.Location[k] = max(c.Location[k], c.Location[k-1])
			}
		}
	}
	return nil
}

// AccuracyPoints returns the displayed accuracy of each measured batch size at the grid of epochs and at
// the ends of its runs.
func (r *Regressor) AccuracyPoints() (all []FilePoint) {
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if s.Accuracy == nil {
			continue
		}
		a := newAccuracyPredictor(s.Accuracy)
		for _, b := range a.batches {
			epochs := slices.Clone(epochGrid[:sort.SearchInts(epochGrid, a.longest)])
			for _, r := range b.runs {
				epochs = append(epochs, r.Length)
			}
			slices.Sort(epochs)
			c := Configuration{Model: s.Model, Dataset: s.Dataset, BatchSize: b.size}
			for _, n := range slices.Compact(epochs) {
				if x := a.predict(b.size, n); x.Known {
					all = append(all, FilePoint{c, n, x.Mean})
				}
			}
		}
	}
	return all
}
