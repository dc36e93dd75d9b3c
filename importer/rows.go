package importer

import (
	"math"
	"slices"
	"strconv"
	"strings"

	tables "courier/regress/table"
	"courier/runner/output"
)

// phaseColumn returns the column that says on which data the metrics of a row were measured, such as "train"
// or "val"; "" if there is none.
func (n *names) phaseColumn() string {
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

// checkRows returns the refusal of all rows if they may be steps of one run, or its epochs, instead of runs; nil
// if they are not. Rows with different batch sizes are runs.
func (n *names) checkRows() *Refusal {
	if n.columns[FieldEpoch] != "" || n.columns[FieldRunID] != "" {
		return nil
	}
	epochs := n.columns[FieldEpochs]
	if !n.isRequested(FieldEpochs) && n.numbersRows(epochs) && numberOf(n.values(epochs)[0]) <= 1 {
		return refuse(ReasonSteps, FieldEpochs, "the column %s counts the rows: give --columns epoch=%s if a row"+
			" is an epoch, or --columns epochs=%s if it is a run", epochs, epochs, epochs)
	}
	batch := n.columns[FieldBatchSize]
	countsBatches := !n.isRequested(FieldBatchSize) && n.numbersRows(batch)
	if !countsBatches && len(slices.Compact(n.values(batch))) > 1 {
		return nil
	}
	for _, name := range n.have {
		isStep := countsBatches && name == batch
		switch compact(prefixes.ReplaceAllString(name, "")) {
		case "step", "steps", "globalstep", "iter", "iters", "iteration", "iterations":
			isStep = true
		}
		if least, _ := stepsOf(n.values(name)); isStep && least > 0 {
			return refuse(ReasonSteps, FieldEpoch, "the rows are steps of one run, by the column %s: "+
				"give --columns epoch=%s if a step is an epoch, or --columns run_id=NAME if a row is a run", name, name)
		}
	}
	return nil
}

// arePercentages reports whether a column has percentages: a percent sign in its name or a value above 1 decides,
// because a low percentage alone may look like a ratio.
func (n *names) arePercentages(name string) bool {
	isAboveOne := func(v string) bool { return numberOf(v) > 1 && numberOf(v) <= 100 }
	return strings.Contains(name, "%") || slices.ContainsFunc(n.values(name), isAboveOne)
}

// stepsOf returns the smallest and the largest difference between numbers that follow each other: NaN if a text is
// no number, 0 without differences.
func stepsOf(texts []string) (least, most float64) {
	for i := 1; i < len(texts); i++ {
		step := tables.Number(texts[i]) - tables.Number(texts[i-1])
		if i == 1 {
			least, most = step, step
		}
		least, most = min(least, step), max(most, step)
	}
	return least, most
}

// decideEpochs decides whether a column named epoch counts the epochs of runs, or is their number.
func (n *names) decideEpochs() {
	name := n.columns[FieldEpoch]
	if n.isRequested(FieldEpoch) || name == "" {
		return
	}
	if !n.isRequested(FieldRunID) && n.numbersRows(n.columns[FieldRunID]) {
		delete(n.columns, FieldRunID)
	}
	values := n.values(name)
	isOnlyRow := len(values) == 1 && n.columns[FieldEpochs] != ""
	rowsAreRuns := (isOnlyRow || n.identifiesRows(n.columns[FieldRunID])) &&
		slices.ContainsFunc(values, func(v string) bool { return numberOf(v) > 1 })
	if !rowsAreRuns && (n.countsEpochs(name) || isOnlyRow) {
		n.partsOfEpochs()
		if !n.isRequested(FieldEndedAt) && n.columns[FieldStartedAt] == "" && n.columns[FieldEndedAt] == "" {
			name := n.known(FieldEndedAt, FieldEndedAt+" timestamp") // of the row
			if name != "" && numberOf(n.values(name)[0]) > 0 {
				n.columns[FieldEndedAt] = name
			}
		}
		return
	}
	delete(n.columns, FieldEpoch)
	switch {
	case n.columns[FieldEpochsDone] != "":
	case n.columns[FieldEpochs] != "" || isAmount(name, values):
		n.columns[FieldEpochsDone] = name
	case n.columns[FieldLoss] == "" && !mayBeLast(values):
		n.columns[FieldEpochs] = name
	}
}

// numbersRows reports whether a column numbers the rows consecutively, as exports of databases do.
func (n *names) numbersRows(column string) bool {
	least, most := stepsOf(n.values(column))
	return least == 1 && most == 1
}

// identifiesRows reports whether a column has a different value in each of several rows.
func (n *names) identifiesRows(column string) bool {
	values := n.values(column)
	return column != "" && len(values) > 1 && len(slices.Compact(slices.Sorted(slices.Values(values)))) == len(values)
}

// isAmount reports whether a column of a table with a row per run has the number of epochs that were
// done. Otherwise it has the last epoch, which may be counted from 0. A fraction, such as 3.0, is the
// number that was done.
func isAmount(name string, values []string) bool {
	isWhole := func(v string) bool { return !strings.Contains(v, ".") }
	switch _, last := cutLast(name); compact(last) {
	case "epoch", "stoppedepoch", "lastepoch", "finalepoch":
		return !slices.ContainsFunc(values, isWhole)
	}
	return true
}

// mayBeLast reports whether numbers, such as 9, 19, 4, may be the last epochs of runs, counted from 0.
// Tracking tools export them together with the last loss.
func mayBeLast(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return math.Mod(numberOf(v)+1, 5) != 0 })
}

// partsOfEpochs drops a column with the time of the training in each epoch, if another column has the
// time of its validation: neither is the time of the epoch.
func (n *names) partsOfEpochs() {
	validates := slices.ContainsFunc(n.have, func(name string) bool {
		return output.ColumnOf(name).IsHeldOut && (strings.Contains(compact(name), "time") ||
			strings.Contains(compact(name), "seconds") || strings.Contains(compact(name), "duration"))
	})
	for _, field := range []string{FieldSeconds, FieldEpochSeconds} {
		if validates && !n.isRequested(field) && output.ColumnOf(n.columns[field]).IsTraining {
			delete(n.columns, field)
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
