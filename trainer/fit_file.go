package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// ErrTooFewExamples reports that there is nothing to fit yet.
var ErrTooFewExamples = errors.New("too few examples")

// Files are the encoded files of a regressor, and the scores of a refit against what was served. The
// scores are not part of the files, so that a repeated fit equals the champion.
type Files struct {
	Model, Manifest []byte
	Scores          []evidence.RefitScore
	Correction      string // the drift that the fit is adjusted for; "" if there is none
}

// manifestOf returns the manifest of a fit, without its state.
func manifestOf(target string, examples []Example, state *evidence.State, o Options) treefile.Manifest {
	m := treefile.Manifest{
		Target:    target,
		Unit:      "seconds",
		Transform: treefile.Log,
		Examples:  treefile.Examples{Count: len(examples)},
		Version:   o.Version,
	}
	held, accuracies := state.HeldOut()
	if target == schemas.TargetAccuracy {
		m.Unit, m.Transform, held = "", treefile.None, accuracies
	}
	if held.Runs > 0 {
		m.HeldOutError = &held.Error
	}
	m.Examples.Last = lastOf(examples)
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
	m.Examples.Configurations = countConfigurations(runs)

	features := fileFeatures(m.Target, runs, foreign)
	var points []treefile.Point
	predicted := state.TimePoints()
	if m.Target == schemas.TargetAccuracy {
		predicted = state.AccuracyPoints()
	}
	for _, at := range predicted {
		level := schemas.ModelLevel(at.Model, at.Dataset)
		points = append(points, treefile.Point{
			Row: evidence.Row(features, level, &at.Configuration, at.Epochs), Value: at.Value,
		})
	}
	if len(points) == 0 {
		return files, fmt.Errorf("fit %s: %w: no predictions", m.Target, ErrTooFewExamples)
	}
	tree, err := treefile.Grow(features, points)
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

// fileFeatures returns the columns of a target. A row between the points of a file gets the
// prediction of a point that agrees in the first columns, so the batch size is the last one.
func fileFeatures(target string, runs []evidence.Run, foreign schemas.ForeignColumns) []treefile.Feature {
	models, nodes := map[string]bool{}, map[string]bool{}
	for i := range runs {
		models[schemas.ModelLevel(runs[i].Model, runs[i].Dataset)] = true
		nodes[runs[i].NodeType] = true
	}
	all := []treefile.Feature{{
		Name: evidence.ColumnModel, Levels: slices.Sorted(maps.Keys(models)),
	}}
	if target != schemas.TargetAccuracy {
		all = append(all, treefile.Feature{
			Name: evidence.ColumnNodeType, Levels: slices.Sorted(maps.Keys(nodes)),
		})
	}
	if target == schemas.TargetStartup {
		return all
	}
	if target == schemas.TargetEpochTime {
		all = append(all,
			treefile.Feature{Name: evidence.ColumnCPUs, Unit: "processes"},
			treefile.Feature{Name: evidence.ColumnConcurrentJobs, Unit: "jobs"},
			treefile.Feature{
				Name: evidence.ColumnProcessesPerCore, Unit: "processes per processor",
			})
		for _, f := range foreign {
			all = append(all, treefile.Feature{Name: f.Name, Unit: "ratio", Typical: f.Typical})
		}
	}
	return append(all, treefile.Feature{Name: evidence.ColumnEpochs, Unit: "epochs"},
		treefile.Feature{Name: evidence.ColumnBatchSize, Unit: "samples"})
}
