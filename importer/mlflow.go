package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"courier/schemas"
)

// Directory reads a directory of MLflow's file store: the whole store, an experiment, or a run. It
// returns only I/O errors; Finish returns rejected runs.
func (r *Reader) Directory(name string, dir fs.FS) error {
	if len(r.o.Where) > 0 {
		return errNoRows(name)
	}
	before := r.found.Read
	if err := r.mlflow(name, dir); err != nil {
		return err
	}
	if r.found.Read == before {
		return fmt.Errorf("%s has no run of MLflow (meta.yaml with a run_id)", name)
	}
	return nil
}

// deepest is the depth of the files of a run in a store: below the experiment and the run.
const deepest = 2

// mlflow reads a run, or the runs of an experiment or a store (mlflow/store/tracking/file_store.py).
func (r *Reader) mlflow(name string, dir fs.FS) error {
	return fs.WalkDir(dir, ".", func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".trash" || strings.Count(at, "/") >= deepest):
			return fs.SkipDir
		case e.Name() != "meta.yaml":
			return nil
		}
		text, err := fs.ReadFile(dir, at)
		meta := flat(string(text))
		if err != nil || meta["run_id"] == "" && meta["run_uuid"] == "" {
			return err
		}
		return r.mlflowRun(name, dir, path.Dir(at), meta)
	})
}

// topLevel matches a plain value at the top level of a YAML file.
var topLevel = regexp.MustCompile(`(?m)^([\w-]+):[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|(.*?))[ \t\r]*$`)

// flat parses the top level of a YAML file with plain values.
func flat(text string) map[string]string {
	values := map[string]string{}
	for _, m := range topLevel.FindAllStringSubmatch(text, -1) {
		if value := m[2] + m[3] + m[4]; value != "null" && value != "~" {
			values[m[1]] = value
		}
	}
	return values
}

// statuses are the names of the numbers of mlflow.entities.RunStatus in the file store.
var statuses = map[string]string{"1": "running", "2": "scheduled", "3": "finished", "4": "failed", "5": "killed"}

// mlflowRun reads one run.
func (r *Reader) mlflowRun(name string, dir fs.FS, at string, meta map[string]string) error {
	d := newDraft(Place{File: path.Join(name, at)})
	if meta["lifecycle_stage"] == "deleted" {
		r.reject(d.Place, refuse(ReasonNothing, "lifecycle_stage", "the run was deleted in MLflow"))
		return nil
	}
	tags, errTags := files(dir, path.Join(at, "tags"))
	params, errParams := files(dir, path.Join(at, "params"))
	metrics, err := files(dir, path.Join(at, "metrics"))
	if err := errors.Join(errTags, errParams, err); err != nil {
		return err
	}
	maps.Copy(tags, params)
	params = tags
	d.called = columnsOf(names{have: slices.Sorted(maps.Keys(params))}, r.o.Columns)
	for field, name := range d.called {
		if !measured(field) {
			d.values[field] = strings.TrimSpace(params[name])
		}
	}
	d.values[FieldRunID], d.values[FieldUser] = cmp.Or(meta["run_id"], meta["run_uuid"]), meta["user_id"]
	d.values[FieldStartedAt], d.values[FieldEndedAt] = meta["start_time"], meta["end_time"]
	d.values[FieldOutcome] = cmp.Or(statuses[meta["status"]], meta["status"])
	d.values[FieldNodes] = params[r.o.Columns[FieldNodes]]
	if d.values[FieldNodes] == "" && r.o.Defaults[FieldNodes] == "" {
		d.nodes = []string{nodeOf(name)} // one node for all runs of a store
	}
	if why := r.curves(d, metrics); why != nil {
		r.reject(d.Place, why)
		return nil
	}
	r.addRun(d)
	return nil
}

// measured reports whether a field comes from metrics or meta.yaml instead of parameters.
func measured(field string) bool {
	return slices.Contains([]string{
		FieldEpoch, FieldEpochSeconds, FieldAccuracy, FieldLoss, FieldRunID, FieldUser,
		FieldOutcome, FieldStartedAt, FieldEndedAt, FieldSeconds, FieldNodes,
	}, field)
}

// maxFile is the maximum size of a parameter or metric.
const maxFile = 16 << 20

// files returns the content of all files below a directory by their relative path. A metric with a
// slash in its name is in a subdirectory. A missing directory counts as empty.
func files(dir fs.FS, at string) (map[string]string, error) {
	found := map[string]string{}
	if _, err := fs.Stat(dir, at); err != nil {
		return found, nil
	}
	err := fs.WalkDir(dir, at, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Size() > maxFile {
			return err
		}
		text, err := fs.ReadFile(dir, file)
		found[strings.TrimPrefix(file, at+"/")] = string(text)
		return err
	})
	return found, err
}

// curves derives the epochs of a run from its metrics: from the first of epoch time, accuracy and
// loss with a value per epoch. Without an epoch time, an epoch lasts from the previous value to its
// own. The first epoch then begins at the start of the run and includes the start-up.
func (r *Reader) curves(d *runDraft, metrics map[string]string) *Refusal {
	byField := map[string][]metricPoint{}
	for field, name := range columnsOf(names{have: slices.Sorted(maps.Keys(metrics))}, r.o.Columns) {
		points, why := pointsOf(metrics[name])
		if why != nil {
			why.Field = field + " (metrics/" + name + ")"
			return why
		}
		if field == FieldSeconds && len(points) > 0 {
			d.values[FieldSeconds] = points[len(points)-1].text
		}
		byField[field] = points
	}
	if p := byField[FieldAccuracy]; len(p) > 0 {
		d.values[FieldAccuracy] = p[len(p)-1].text
	}
	promised := r.value(d, FieldEpochs)
	for _, field := range []string{FieldEpochSeconds, FieldAccuracy, FieldLoss} {
		points := byField[field]
		if len(points) > 1 || len(points) == 1 && promised == "1" {
			delete(d.values, FieldSeconds)
			return r.epochs(d, field, points, byField)
		}
	}
	return nil
}

// epochs converts the points of a metric to epochs.
func (r *Reader) epochs(d *runDraft, field string, points []metricPoint, all map[string][]metricPoint) *Refusal {
	if why := perEpoch(points, field, r.value(d, FieldEpochs)); why != nil {
		return why
	}
	start, err := Instant(r.value(d, FieldStartedAt), r.o.Zone)
	if err != nil {
		return refuse(ReasonInvalid, FieldStartedAt, "%s", err)
	}
	before := start.UnixMilli()
	for i, p := range points {
		e := PastEpoch{
			Number:  uint32(i + 1),
			Source:  schemas.DurationArrival,
			Seconds: float64(p.at-before) / 1000,
			End:     float64(p.at-start.UnixMilli()) / 1000,
		}
		if field == FieldEpochSeconds {
			e.Seconds, e.Source = p.value, schemas.DurationReported
		}
		if !(e.Seconds > 0) || p.at < before {
			return refuse(ReasonPositive, FieldEpoch,
				"the value of step %d is not later than the previous one: values logged at the"+
					" end of a run have no epoch times; log a metric epoch_seconds",
				p.step)
		}
		e.Accuracy, e.Loss = atStep(all[FieldAccuracy], p.step), atStep(all[FieldLoss], p.step)
		d.epochs, before = append(d.epochs, e), p.at
	}
	return nil
}

// atStep returns the value of a metric at a step, nil without one.
func atStep(points []metricPoint, step int64) *float64 {
	for i := range points {
		if points[i].step == step {
			return &points[i].value
		}
	}
	return nil
}

// metricPoint is a value of an MLflow metric.
type metricPoint struct {
	at    int64 // milliseconds since 1970
	value float64
	text  string // text of value
	step  int64
}

// pointsOf parses the file of a metric and sorts its values by step. Each line contains a time, a
// value and a step, which older versions omit.
func pointsOf(text string) ([]metricPoint, *Refusal) {
	var all []metricPoint
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		words = append(words, strconv.Itoa(len(all))) // the step of older versions
		p := metricPoint{text: words[1]}
		var badTime, badValue, badStep error
		p.at, badTime = strconv.ParseInt(words[0], 10, 64)
		p.value, badValue = strconv.ParseFloat(words[1], 64)
		p.step, badStep = strconv.ParseInt(words[min(2, len(words)-1)], 10, 64)
		if len(words) < 3 || cmp.Or(badTime, badValue, badStep) != nil {
			return nil, refuse(ReasonUnreadable, "", "line %d is %q, want a time in milliseconds, a value and a step",
				number, clip(strings.TrimSpace(line)))
		}
		if p.value-p.value == 0 { // omit NaN and infinities of a diverged network
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b metricPoint) int { return cmp.Compare(a.step, b.step) })
	return all, nil
}

// perEpoch rejects a metric without exactly one value per epoch. Steps either count from 0 or 1, or
// are iterations whose number equals the configured number of epochs.
func perEpoch(points []metricPoint, field, promised string) *Refusal {
	counted := true
	for i, p := range points {
		if i > 0 && p.step == points[i-1].step {
			return refuse(ReasonMixed, field,
				"step %d was logged twice: the run was restarted, or two runs wrote to it",
				p.step)
		}
		counted = counted && p.step-points[0].step == int64(i)
	}
	if first := points[0].step; counted && (first == 0 || first == 1) ||
		promised == strconv.Itoa(len(points)) {
		return nil
	}
	return refuse(ReasonEpochs, field,
		"%d values from step %d to %d are not one per epoch (expected: %s): name a metric that is"+
			" logged each epoch with --columns %s=METRIC",
		len(points), points[0].step, points[len(points)-1].step, cmp.Or(promised, "unknown"), field)
}
