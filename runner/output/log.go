package output

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Log reads the epochs of lines that name their values: rows below a head, as CSV loggers write them,
// JSON objects, and dictionaries of Python. It trusts the field "epoch". An epoch may have several lines,
// each with a part of its metrics. It ends with the line that completes its metric on held-out data and the loss
// of the epoch, if the table has a column for that, or else with the next epoch.
type Log struct {
	values    Values
	isChannel bool // each line is an epoch

	stream  splitter
	scanner scanner
	table   table
	current *logEpoch
	last    uint32 // last reported epoch, once isSeen is set
	isSeen  bool
}

// logEpoch is an epoch that has not ended.
type logEpoch struct {
	*block
	report EpochReport // its number, its counts and the time of its last line

	isEvaluated bool // it has a metric on held-out data
}

// NewLog returns a Log of a file.
func NewLog() *Log { return &Log{table: table{isFile: true}} }

// NewChannel returns a Log of the side channel, in which each line is an epoch.
func NewChannel() *Log { return &Log{table: table{isFile: true}, isChannel: true} }

// Head reads the head of a table in a file that is read only from a later line on.
func (g *Log) Head(text []byte) {
	g.scanner.scan(text)
	g.table.isHead(&g.scanner)
}

// Write takes the next bytes, and returns the epochs that they complete.
func (g *Log) Write(data []byte, at time.Time) (reports []EpochReport) {
	g.stream.add(data, at, func(line []byte, _ bool, at time.Time) { reports = append(reports, g.line(line, at)...) })
	return reports
}

// Close returns the epochs that the end of the file completes.
func (g *Log) Close(at time.Time) (reports []EpochReport) {
	g.stream.end(func(line []byte, _ bool, at time.Time) { reports = g.line(line, at) }, true)
	return append(reports, g.end(at)...)
}

// line takes a line.
func (g *Log) line(text []byte, at time.Time) []EpochReport {
	if begin := bytes.IndexByte(text, '{'); begin >= 0 {
		if text = text[begin:]; bytes.IndexByte(text, '}') < 0 {
			return nil // it is incomplete
		}
		g.table.names = nil
	}
	l := g.scanner.scan(text)
	isRow := g.table.read(&g.scanner)
	i := slices.IndexFunc(l.fields, func(f field) bool {
		return f.name.counter == countsEpochs && f.name.kind == kindNone && f.name.flags == 0 &&
			f.value >= 0 && f.value <= schemas.MaxEpochs && f.value == math.Trunc(f.value)
	})
	if i < 0 || !isRow && text[0] != '{' {
		return nil
	}
	number := uint32(l.fields[i].value)
	isFirst := !g.isSeen && g.current == nil
	if isFirst && isRow && number > 1 && nameOf(l.label(i), nil).flags&flagConfig != 0 {
		g.table.names = nil // the column epochs has the epochs of runs
		return nil
	}
	if g.isSeen && (number == g.last || number < g.last && !g.isChannel) {
		return nil // another line or rank has reported it
	}

	var reports []EpochReport
	if g.current != nil && g.current.report.Epoch != number {
		reports = g.end(at)
	}
	if g.current == nil {
		g.current = &logEpoch{block: newBlock(), report: EpochReport{Epoch: number}}
	}
	g.current.report.At = at
	hasSteps := bytes.Contains(l.text, []byte("data_time")) // a part of the time of a step
	for i := range l.fields {
		if !hasSteps || string(l.label(i)) != "time" {
			g.current.isEvaluated = g.field(&l.fields[i], l) || g.current.isEvaluated
		}
	}
	awaits := func(n name) bool { // train_loss_epoch
		isSet := func(x reading) bool { return x.name.hash == n.hash }
		return n.kind == kindLoss && n.counter == countsEpochs && n.scope < scopeTest &&
			!slices.ContainsFunc(g.current.readings, isSet)
	}
	if g.isChannel || g.current.isEvaluated && !slices.ContainsFunc(g.table.names, awaits) {
		reports = append(reports, g.end(at)...)
	}
	return reports
}

// label returns the text of the name of a field.
func (l *line) label(i int) []byte {
	n := &l.fields[i].name
	return l.text[n.start:n.end]
}

// field takes a field of the current epoch, and reports whether it is a result on held-out data.
func (g *Log) field(f *field, l *line) (isHeldOut bool) {
	r, label := &g.current.report, strings.ToLower(string(l.text[f.name.start:f.name.end]))
	switch label {
	case "validation_samples":
		r.ValidationSamples = uint64(validCount(f.value, 1<<31))
	case "batch_size":
		r.BatchSize = validCount(f.value, schemas.MaxBatchSize)
	case "cpus":
		r.CPUs = validCount(f.value, schemas.MaxCPUs)
	case "loaders":
		r.Loaders = new(validCount(f.value, schemas.MaxLoaders))
	case "seconds", "duration_seconds", "duration", "time_this_iter_s":
		f.name.counter = countsEpochs
	}
	return g.values.add(g.current.block, f, l)
}

// end returns the epoch that is known to have ended now, if there is one.
func (g *Log) end(at time.Time) []EpochReport {
	e := g.current
	if e == nil {
		return nil
	}
	g.current, g.last, g.isSeen = nil, e.report.Epoch, true
	e.report.ReportedAt, e.report.IsStated = at, g.isChannel
	return []EpochReport{g.values.report(e.report, e.block)}
}

// ownLine matches a line of Courier's own format: an object that has no other fields. All other objects are
// recognised by structure, because they may be about a batch or a part of an epoch.
var ownLine = regexp.MustCompile(
	`(?i)^\{(?:\s*"(?:epoch|seconds|loss|accuracy|(?:validation_)?samples|batch_size|cpus|loaders)"` +
		`\s*:[^:{]*(?:,|\}$))+$`)
