package importer

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"courier/runner/output"
	"courier/schemas"
)

// fieldNames lists the names of the fields in sources; the first is the field itself. Accuracies,
// errors and losses are also found by the vocabulary of package output.
var fieldNames = []struct {
	field string
	known string
}{
	{FieldRunID, "run_id run_uuid run id job_id job trial_id task_id trial number run_name experiment name" +
		" training_job_name"},
	{FieldModel, "model model_name network net architecture arch backbone"},
	{FieldDataset, "dataset dataset_name data_set"},
	{FieldBatchSize, "batch_size batchsize batch bs global_batch_size total_batch_size train_batch_size" +
		" per_device_train_batch_size minibatch_size mini_batch_size samples_per_gpu bsz"},
	{FieldCPUs, "cpus cpu cores num_cpus ncpus total_cores alloc_cpus cpus_per_trial n_cpus n_cores" +
		" num_cores cpu_num"},
	{FieldEpochs, "epochs num_epochs n_epochs nepochs max_epochs max_epoch maxepoch total_epochs" +
		" num_train_epochs epoch_num epochs_total"},
	{FieldEpochsDone, "epochs_done epochs_completed completed_epochs epochs_trained epochs_run" +
		" stopped_epoch last_epoch final_epoch"},
	{FieldSeconds, "duration_seconds duration time total_seconds total_time train_time training_time" +
		" elapsed elapsed_seconds elapsed_time seconds runtime run_time train_runtime walltime wall_time" +
		" wall_clock wall_clock_time time_taken" +
		" time_total total_duration training_duration time_elapsed cumulative_time" +
		" secs train_seconds train_minutes train_hours total_minutes total_hours" +
		" training_time_in_seconds train_wall"},
	{FieldStartup, "startup_seconds startup"},
	{FieldStartedAt, "started_at start_time start started start_date datetime_start begin begin_time" +
		" start_timestamp training_start_time created created_at"},
	{FieldEndedAt, "ended_at end_time end ended finished_at finish_time finished datetime_complete" +
		" completed completed_at completion_time end_date stop_time end_timestamp" +
		" training_end_time"},
	{FieldAccuracy, "accuracy final_accuracy"},
	{FieldError, "error error_rate"},
	{FieldConcurrentJobs, "concurrent_jobs njobs jobs"},
	{FieldNodes, "nodes node host hostname node_list node_name"},
	{FieldNodeCores, "node_cores"},
	{FieldCPUModel, "cpu_model cpu_type processor"},
	{FieldGPUModel, "gpu_model gpu_type gpu_name accelerator"},
	{FieldTrainingSamples, "training_samples train_samples samples num_train_samples"},
	{FieldUser, "user user_id username"},
	{FieldOutcome, "outcome status state job_state state_current training_job_status success exit_code" +
		" exit_status return_code"},
	{FieldEpoch, "epoch training_iteration epoch_number"},
	{FieldEpochSeconds, "epoch_seconds epoch_time epoch_duration time_per_epoch seconds_per_epoch" +
		" sec_per_epoch duration_per_epoch time_this_iter time_epoch epoch_runtime time_this_epoch dur"},
	{FieldLoss, "loss train_loss training_loss"},
}

// Fields lists the name of every field.
func Fields() []string {
	all := make([]string, len(fieldNames))
	for i := range fieldNames {
		all[i] = fieldNames[i].field
	}
	return all
}

// durations are the fields whose columns may name their unit.
var durations = []string{FieldSeconds, FieldEpochSeconds, FieldStartup}

// names are the names of the fields or columns of a source, with some of their values.
type names struct {
	have   []string
	values func(name string) []string // some values, without empty ones; nil: none is known
}

// columnsOf maps fields to names in a source: those that the user requested, or known names whose
// values fit.
func columnsOf(n names, requested map[string]string) map[string]string {
	found := map[string]string{}
	for _, f := range fieldNames {
		if name, ok := requested[f.field]; ok {
			if slices.Contains(n.have, name) {
				found[f.field] = name
			}
			continue
		}
		name := n.known(f.field, strings.Fields(f.known))
		if name != "" && (n.values == nil || len(n.values(name)) > 0) {
			found[f.field] = name
		}
	}
	n.metrics(found, requested)
	if _, ok := requested[FieldBatchSize]; !ok && n.values != nil && n.isPartOfBatch(found[FieldBatchSize]) {
		delete(found, FieldBatchSize)
	}
	if n.values != nil {
		n.epochs(found, requested)
	}
	return found
}

// known returns the first name that has one of the known meanings and values of the field.
func (n *names) known(field string, known []string) string {
	for i, k := range known {
		for _, name := range n.have {
			if !hasMeaning(field, name, compact(k)) {
				continue
			}
			// The own name of a field is always used, so that its wrong values are refused. But "error" may
			// be a message. An unknown word of an outcome may be a failure.
			isOwn := i == 0 && compact(name) == compact(k) && field != FieldError
			isOutcome := field == FieldOutcome && !exitCode.MatchString(name)
			if isOwn || isOutcome || n.fit(field, name) {
				return name
			}
		}
	}
	return ""
}

// prefixes stand before the names of parameters and results in exports of tracking tools, and before
// counts.
var prefixes = regexp.MustCompile(`^(?i:# ?|(?:number|num|no\.?)[_ ]of[_ ]|(?:params?|metrics?|config|cfg|args?|hparams?|hyper_?parameters|` +
	`summary|attributes|values?|tags\.mlflow)[./ :]|(?:params|user_attrs|config|hparams)_)_*`)

// hasMeaning reports whether a name, without its prefix and its unit, equals a known one.
func hasMeaning(field, name, known string) bool {
	plain := prefixes.ReplaceAllString(name, "")
	if normalize(plain) == "n_jobs" { // processes of a run of scikit-learn, not runs beside it
		return false
	}
	if compact(name) == known || compact(plain) == known {
		return true
	}
	if field == FieldBatchSize || field == FieldEpochs { // data.batch_size, but not eval.batch_size
		group, last := cutLast(plain)
		if compact(last) == known && !output.ColumnOf(group).IsHeldOut {
			return true
		}
	}
	base, unit := cutUnit(plain)
	return unit > 0 && slices.Contains(durations, field) && compact(base) == known
}

// cutLast splits a name such as data.batch_size before its last part.
func cutLast(name string) (group, last string) {
	i := strings.LastIndexAny(name, "./")
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}

// cutUnit returns a name without the unit at its end, and the unit in seconds; 0 without one.
func cutUnit(name string) (base string, unit float64) {
	trimmed := strings.TrimRight(name, " )]")
	i := strings.LastIndexFunc(trimmed, func(c rune) bool { return !unicode.IsLetter(c) })
	if i <= 0 {
		return name, 0
	}
	return trimmed[:i], output.UnitSeconds(trimmed[i+1:])
}

// fit reports whether most of the values of a column may be those of a field.
func (n *names) fit(field, name string) bool {
	if n.values == nil {
		return true
	}
	if field == FieldSeconds && n.isTimeOfDay(name) || field == FieldCPUs && n.isUtilization(name) {
		return false
	}
	good, values := 0, n.values(name)
	for _, v := range values {
		if mayBe(field, inWords(field, name, v)) {
			good++
		}
	}
	return 2*good >= len(values)
}

var clockForm = regexp.MustCompile(`^\d{1,2}:\d\d:\d\d(?:\.\d+)?$`)

// isTimeOfDay reports whether a column named time has clocks, beside a column of dates.
func (n *names) isTimeOfDay(name string) bool {
	isDate := func(name string) bool { return compact(name) == "date" || compact(name) == "day" }
	isOther := func(v string) bool { return !clockForm.MatchString(v) }
	return compact(name) == "time" && slices.ContainsFunc(n.have, isDate) &&
		!slices.ContainsFunc(n.values(name), isOther)
}

// isUtilization reports whether a column named cpu has percentages: no run has 95 CPUs.
func (n *names) isUtilization(name string) bool {
	const mostOdd = 8
	return compact(name) == "cpu" && slices.ContainsFunc(n.values(name), func(v string) bool {
		return numberOf(v) > mostOdd && math.Mod(numberOf(v), 2) != 0
	})
}

// mayBe reports whether a text may be a value of a field.
func mayBe(field, text string) bool {
	var why *Refusal
	switch field {
	case FieldBatchSize, FieldCPUs, FieldEpochs, FieldNodeCores, FieldTrainingSamples, FieldConcurrentJobs:
		_, why = count(field, text, 1<<53)
	case FieldEpoch, FieldEpochsDone:
		v, err := strconv.ParseFloat(text, 64)
		return err == nil && v >= 0 && v <= schemas.MaxEpochs
	case FieldSeconds, FieldEpochSeconds, FieldStartup:
		v, known := output.ParseSeconds(text)
		return known && v <= schemas.MaxSLO.Seconds()
	case FieldStartedAt, FieldEndedAt:
		_, err := Instant(text, time.UTC)
		return err == nil || dayOrMonthFirst.MatchString(text) // it is refused with its reason
	case FieldAccuracy, FieldError:
		_, why = ratio(field, text)
	case FieldOutcome:
		_, known := outcomeOf(text)
		return known
	case FieldModel:
		_, err := strconv.ParseFloat(text, 64)
		return err != nil
	}
	return why == nil
}

// isPartOfBatch reports whether a column has the batch size of one device, while another column counts
// several devices or passes. Then no column has the batch size.
func (n *names) isPartOfBatch(batch string) bool {
	name := compact(batch)
	if !strings.Contains(name, "perdevice") && !strings.Contains(name, "pergpu") {
		return false
	}
	for _, column := range n.have {
		switch compact(prefixes.ReplaceAllString(column, "")) {
		case "numgpus", "ngpus", "ngpu", "gpus", "worldsize", "numdevices", "nprocs", "gradientaccumulationsteps":
			if slices.ContainsFunc(n.values(column), func(v string) bool { return v != "0" && v != "1" }) {
				return true
			}
		}
	}
	return false
}

// metrics finds the columns of accuracy, error and loss by their meaning: held-out data first. An
// accuracy on training data is none.
func (n *names) metrics(found, requested map[string]string) {
	rank := map[string]int{}
	choose := func(field, name string, r int) {
		if _, ok := requested[field]; ok || !n.fit(field, name) {
			return
		}
		if n.values != nil {
			have, had := len(n.values(name)), len(n.values(found[field]))
			if have == 0 || 2*have < had { // such as a mean in the last row
				return
			}
			if 2*had < have {
				delete(rank, field)
			}
		}
		if best, known := rank[field]; !known || r < best {
			found[field], rank[field] = name, r
		}
	}
	for _, name := range n.have {
		c := output.ColumnOf(prefixes.ReplaceAllString(name, ""))
		switch {
		case c.Quantity == output.QuantityLoss && !c.IsHeldOut:
			choose(FieldLoss, name, c.Rank)
		case c.IsTraining:
		case c.Quantity == output.QuantityAccuracy:
			choose(FieldAccuracy, name, c.Rank)
		case c.Quantity == output.QuantityErrorRate:
			choose(FieldError, name, c.Rank)
		}
	}
	accuracy, hasAccuracy := rank[FieldAccuracy]
	wrong, hasError := rank[FieldError]
	if hasAccuracy && hasError && wrong/100 < accuracy/100 {
		delete(found, FieldAccuracy) // the error was measured on better data
	}
}

// phase returns the column that says on which data the metrics of a row were measured, such as "train"
// or "val"; "" if there is none.
func (n *names) phase() string {
	for _, name := range n.have {
		training, heldOut := false, false
		isPhase := true
		for _, text := range n.values(name) {
			c := output.ColumnOf(text)
			isPhase = isPhase && c.Quantity == output.QuantityNone && (c.IsTraining || c.IsHeldOut)
			training, heldOut = training || c.IsTraining, heldOut || c.IsHeldOut
		}
		if isPhase && training && heldOut {
			return name
		}
	}
	return ""
}

// steps returns the column that counts the steps of one run, "" if each row is an epoch or a run. Rows with
// different batch sizes are runs.
func (n *names) steps(found map[string]string) string {
	if found[FieldEpoch] != "" || found[FieldRunID] != "" ||
		len(slices.Compact(n.values(found[FieldBatchSize]))) > 1 {
		return ""
	}
	for _, name := range n.have {
		switch compact(prefixes.ReplaceAllString(name, "")) {
		case "step", "steps", "globalstep", "iter", "iters", "iteration", "iterations":
			if values := n.values(name); len(values) > 1 && areGrowing(values) {
				return name
			}
		}
	}
	return ""
}

// areGrowing reports whether each text is a number above the previous one.
func areGrowing(texts []string) bool {
	previous := math.Inf(-1)
	for _, text := range texts {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v <= previous {
			return false
		}
		previous = v
	}
	return true
}

// epochs decides whether a column named epoch counts the epochs of runs, or is their number.
func (n *names) epochs(found, requested map[string]string) {
	name := found[FieldEpoch]
	if _, ok := requested[FieldEpoch]; ok || name == "" {
		return
	}
	if _, ok := requested[FieldRunID]; !ok && n.numbersRows(found[FieldRunID]) {
		delete(found, FieldRunID)
	}
	values := n.values(name)
	isOnlyRow := len(values) == 1 && found[FieldEpochs] != ""
	rowsAreRuns := (isOnlyRow || n.haveOwnNames(found[FieldRunID])) &&
		slices.ContainsFunc(values, func(v string) bool { return numberOf(v) > 1 })
	if !rowsAreRuns && (n.countsEpochs(name) || isOnlyRow) {
		n.partsOfEpochs(found, requested)
		return
	}
	delete(found, FieldEpoch)
	switch {
	case found[FieldEpochsDone] != "":
	case found[FieldEpochs] != "" || isAmount(name, values):
		found[FieldEpochsDone] = name
	case found[FieldLoss] == "" && !mayBeLast(values):
		found[FieldEpochs] = name
	}
}

// numbersRows reports whether a column has the numbers of rows, as an export of a database does.
func (n *names) numbersRows(column string) bool {
	values := n.values(column)
	for i := 1; i < len(values); i++ {
		if numberOf(values[i]) != numberOf(values[i-1])+1 {
			return false
		}
	}
	return len(values) > 1
}

// haveOwnNames reports whether each of several rows has a name of its own in a column.
func (n *names) haveOwnNames(column string) bool {
	values := n.values(column)
	return len(values) > 1 && len(slices.Compact(slices.Sorted(slices.Values(values)))) == len(values)
}

// isAmount reports whether a column of rows that are runs has the number of their epochs, and not the
// last one, which may count from 0. A progress, such as 3.0, is what was done.
func isAmount(name string, values []string) bool {
	isWhole := func(v string) bool { return !strings.Contains(v, ".") }
	switch _, last := cutLast(name); compact(last) {
	case "epoch", "stoppedepoch", "lastepoch", "finalepoch":
		return !slices.ContainsFunc(values, isWhole)
	}
	return true
}

// mayBeLast reports whether numbers may be the last epochs of runs, counted from 0, as tracking tools
// export them beside a loss: 9, 19, 4.
func mayBeLast(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return math.Mod(numberOf(v)+1, 5) != 0 })
}

// numberOf returns the number in a cell; 0 if it is none.
func numberOf(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// partsOfEpochs drops a column with the time of the training in each epoch, if another column has the
// time of its validation: neither is the time of the epoch.
func (n *names) partsOfEpochs(found, requested map[string]string) {
	validates := slices.ContainsFunc(n.have, func(name string) bool {
		return output.ColumnOf(name).IsHeldOut && (strings.Contains(compact(name), "time") ||
			strings.Contains(compact(name), "seconds") || strings.Contains(compact(name), "duration"))
	})
	for _, field := range []string{FieldSeconds, FieldEpochSeconds} {
		_, isRequested := requested[field]
		if validates && !isRequested && output.ColumnOf(found[field]).IsTraining {
			delete(found, field)
		}
	}
}

// countsEpochs reports whether the values of a column grow by at most 1 somewhere, or begin with 0 or 1.
func (n *names) countsEpochs(name string) (counts bool) {
	previous := -1.0
	for _, text := range n.values(name) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		counts = counts || v <= 1 || v > previous && v-previous <= 1 && previous >= 0
		previous = v
	}
	return counts
}

// normalize returns a name in lower case with underscores as separators.
func normalize(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '.' || r == '/' {
			return '_'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// compact returns a name in lower case without separators, so that "ValAcc" equals "val_acc".
func compact(name string) string { return strings.ReplaceAll(normalize(name), "_", "") }
