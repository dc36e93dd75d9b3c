package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// ErrTooFewExamples reports that there is nothing to fit yet.
var ErrTooFewExamples = errors.New("too few examples")

// Files are the encoded files of a regressor.
type Files struct{ Model, Manifest []byte }

// manifestOf returns the manifest of a fit, without its state.
func manifestOf(
	target string, examples []Example, evaluations json.RawMessage, o Options,
) treefile.Manifest {
	m := treefile.Manifest{
		Target:      target,
		Unit:        "seconds",
		Transform:   treefile.Log,
		Evaluations: evaluations,
		Examples:    treefile.Examples{Count: len(examples)},
		Version:     o.Version,
	}
	if target == schemas.TargetAccuracy {
		m.Unit, m.Transform = "", treefile.None
	}
	m.Examples.First, m.Examples.Last = times(examples)
	return m
}

// encodeState returns the files of a state that has learned from runs. The tree has the medians, so
// that any reader of such files can predict them; the manifest has the distributions.
func encodeState(
	m treefile.Manifest, runs []evidence.Run, foreign schemas.ForeignColumns,
	state *evidence.State,
) (files Files, err error) {
	if m.State, err = json.Marshal(state); err != nil {
		return files, fmt.Errorf("encode the state of %s: %w", m.Target, err)
	}
	if m.HeldOutError, err = heldOutError(m.Target, m.Evaluations); err != nil {
		return files, fmt.Errorf("read the evaluations of %s: %w", m.Target, err)
	}
	m.Examples.Configurations = countConfigurations(runs)

	served := servedState{target: m.Target}
	if served.predictor, served.corrections, err = state.Compile(); err != nil {
		return files, err
	}
	columns := newFileColumns(m.Target, runs, foreign)
	var points []treefile.Point
	for _, at := range gridPoints(m.Target, runs) {
		if value, known := served.median(at.Configuration, at.epochs); known {
			points = append(points, treefile.Point{Row: columns.row(at), Value: value})
		}
	}
	if len(points) == 0 {
		return files, fmt.Errorf("fit %s: %w: no predictions", m.Target, ErrTooFewExamples)
	}
	tree, err := treefile.Grow(columns.features(), points)
	if err != nil {
		return files, fmt.Errorf("fit %s: %w", m.Target, err)
	}
	files.Model, files.Manifest, err = tree.Encode(m)
	return files, err
}

// countConfigurations counts the distinct configurations of runs.
func countConfigurations(runs []evidence.Run) int {
	seen := map[evidence.Configuration]bool{}
	for i := range runs {
		seen[runs[i].Configuration] = true
	}
	return len(seen)
}

// heldOutError averages the held-out errors of runs of measured configurations, one weight per run;
// nil if no run could be held out. Errors of accuracies are absolute, errors of times relative.
func heldOutError(target string, evaluations json.RawMessage) (*float64, error) {
	var all []evidence.Evaluation
	if err := json.Unmarshal(evaluations, &all); err != nil {
		return nil, err
	}
	runs, sum := 0, 0.0
	for i := range all {
		n, e := all[i].Measured.Runs, all[i].Measured.RelativeError
		if target == schemas.TargetAccuracy {
			n, e = all[i].AccuracyMeasured.Runs, all[i].AccuracyMeasured.AbsoluteError
		}
		runs, sum = runs+n, sum+float64(n)*e
	}
	if runs == 0 {
		return nil, nil
	}
	mean := sum / float64(runs)
	return &mean, nil
}

// servedState predicts a target as an advisor does.
type servedState struct {
	target      string
	predictor   *evidence.Predictor
	corrections *evidence.Corrections
}

// median returns the served median at a configuration: the logarithm of a time, or the accuracy
// after some epochs.
func (s *servedState) median(c evidence.Configuration, epochs int) (median float64, known bool) {
	switch s.target {
	case schemas.TargetStartup:
		d := s.predictor.Startup(c)
		return math.Log(d.Median()), d.Known()
	case schemas.TargetAccuracy:
		a := s.predictor.Accuracy(c, epochs)
		return a.Median, a.Known
	}
	e := s.predictor.Epochs(s.corrections, c)
	return e.Location, e.Known()
}

// gridPoint is a configuration for which a file has a prediction; of an accuracy, after some epochs.
type gridPoint struct {
	evidence.Configuration
	epochs int
}

// gridPoints returns the configurations of runs, and the same with batch sizes a quarter octave
// apart within the range of the model on the dataset.
func gridPoints(target string, runs []evidence.Run) (all []gridPoint) {
	type level struct{ model, dataset string }
	type sizes struct{ smallest, largest int }
	seen, ranges := map[gridPoint]bool{}, map[level]sizes{}
	add := func(p gridPoint) {
		if !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	for i := range runs {
		r := &runs[i]
		of := level{r.Model, r.Dataset}
		s, known := ranges[of]
		if !known {
			s = sizes{r.BatchSize, r.BatchSize}
		}
		ranges[of] = sizes{min(s.smallest, r.BatchSize), max(s.largest, r.BatchSize)}
		if target != schemas.TargetAccuracy {
			add(gridPoint{r.Configuration, 0})
			continue
		}
		for _, e := range r.Epochs {
			add(gridPoint{r.Configuration, e.Number})
		}
	}
	for _, p := range slices.Clone(all) {
		s := ranges[level{p.Model, p.Dataset}]
		last := 4 * math.Log2(float64(s.largest))
		for q := math.Ceil(4 * math.Log2(float64(s.smallest))); q < last; q++ {
			p.BatchSize = int(math.Round(math.Exp2(q / 4)))
			add(p)
		}
	}
	return all
}

// fileColumns are the columns of a file.
type fileColumns struct {
	columns       []fileColumn
	models, nodes []string // levels
}

// fileColumn describes a column and returns its value; a category has its levels.
type fileColumn struct {
	treefile.Feature
	value func(p *gridPoint) float64
}

// newFileColumns returns the columns of a target. A row between the points of a file gets the
// prediction of a point that agrees in the first columns, so the batch size is the last one.
func newFileColumns(
	target string, runs []evidence.Run, foreign schemas.ForeignColumns,
) *fileColumns {
	models, nodes := map[string]bool{}, map[string]bool{}
	for i := range runs {
		models[schemas.ModelLevel(runs[i].Model, runs[i].Dataset)] = true
		nodes[runs[i].NodeType] = true
	}
	c := &fileColumns{
		models: slices.Sorted(maps.Keys(models)),
		nodes:  slices.Sorted(maps.Keys(nodes)),
	}
	add := func(f treefile.Feature, value func(p *gridPoint) float64) {
		c.columns = append(c.columns, fileColumn{f, value})
	}
	add(treefile.Feature{Name: "model", Levels: c.models}, func(p *gridPoint) float64 {
		return float64(slices.Index(c.models, schemas.ModelLevel(p.Model, p.Dataset)))
	})
	if target == schemas.TargetAccuracy {
		add(treefile.Feature{Name: "epochs_done", Unit: "epochs"}, func(p *gridPoint) float64 {
			return float64(p.epochs)
		})
	} else {
		add(treefile.Feature{Name: "node_type", Levels: c.nodes}, func(p *gridPoint) float64 {
			return float64(slices.Index(c.nodes, p.NodeType))
		})
		add(treefile.Feature{Name: "cpus", Unit: "processes"}, func(p *gridPoint) float64 {
			return float64(p.CPUs)
		})
	}
	if target == schemas.TargetEpochTime {
		c.addLoad(add, foreign)
	}
	add(treefile.Feature{Name: "batch_size", Unit: "samples"}, func(p *gridPoint) float64 {
		return float64(p.BatchSize)
	})
	return c
}

// addLoad adds the columns of a node's load.
func (c *fileColumns) addLoad(
	add func(treefile.Feature, func(p *gridPoint) float64), foreign schemas.ForeignColumns,
) {
	add(treefile.Feature{Name: "concurrent_jobs", Unit: "jobs"}, func(p *gridPoint) float64 {
		return p.ConcurrentJobs
	})
	add(treefile.Feature{
		Name: "processes_per_core", Unit: "processes per processor",
	}, func(p *gridPoint) float64 { return p.ProcessesPerCore })
	for _, f := range foreign {
		add(treefile.Feature{
			Name: f.Name, Unit: "ratio", Typical: f.Typical,
		}, func(p *gridPoint) float64 {
			if f.Name == schemas.ColumnForeignCPU {
				return p.ForeignCPURatio
			}
			return p.ForeignIOWaitRatio
		})
	}
}

func (c *fileColumns) features() (all []treefile.Feature) {
	for _, column := range c.columns {
		all = append(all, column.Feature)
	}
	return all
}

func (c *fileColumns) row(p gridPoint) []float64 {
	row := make([]float64, len(c.columns))
	for i, column := range c.columns {
		row[i] = column.value(&p)
	}
	return row
}
