package collector

import (
	"fmt"
	"math"
	"time"

	"courier/schemas"
)

// Formats of a job's output.
const (
	FormatAuto    = "auto"    // BigDL's log or JSON lines, whichever comes first
	FormatBigDL   = "bigdl"   // the log of BigDL's optimizers
	FormatJSON    = "json"    // a line {"epoch":1,"seconds":2.5,"loss":0.3,"accuracy":0.97,"batch_size":32} at each epoch's end
	FormatPattern = "pattern" // the user's own regular expression
)

// Formats lists every format.
func Formats() []string { return []string{FormatAuto, FormatBigDL, FormatJSON, FormatPattern} }

// report is what a job's output says at the end of an epoch.
type report struct {
	epoch    uint32   // as printed; some count from 0
	seconds  float64  // duration that the output reports; 0: none
	loss     *float64 // of training
	accuracy *float64 // 0 to 1
	samples  uint64   // that the accuracy is of; 0: not said
	batch    uint32   // batch size that it ran with; 0: not said
	at       time.Time
}

// parser reads one format. It is given every line in order.
type parser interface {
	// line returns what the line completes: usually nothing, else one report.
	line(line []byte, at time.Time) []report
	// end returns what was not complete when the output ended.
	end() []report
	// again returns the parser before the first line.
	again() parser
	// familiar tells whether a line of this format was seen.
	familiar() bool
}

var (
	_ parser = (*bigdl)(nil)
	_ parser = (*jsonLines)(nil)
	_ parser = (*pattern)(nil)
)

// output turns the bytes that a job prints into reports. It does no input or
// output of its own, and remembers at most one line of each stream.
type output struct {
	parsers []parser // the first to report stays, the others go
	streams [2]lines // standard output and standard error
	count   int      // lines so far
	last    string   // the last line, shortened
}

// newOutput returns an output of the format. A pattern without a format means
// FormatPattern. The error names the flag.
func newOutput(format, expression string) (*output, error) {
	if expression != "" && (format == "" || format == FormatAuto) {
		format = FormatPattern
	}
	if expression != "" && format != FormatPattern {
		return nil, fmt.Errorf("--epoch-pattern is for --format %s, not %s", FormatPattern, format)
	}
	switch format {
	case FormatAuto, "":
		return &output{parsers: []parser{&bigdl{}, &jsonLines{}}}, nil
	case FormatBigDL:
		return &output{parsers: []parser{&bigdl{}}}, nil
	case FormatJSON:
		return &output{parsers: []parser{&jsonLines{}}}, nil
	case FormatPattern:
		p, err := newPattern(expression)
		if err != nil {
			return nil, err
		}
		return &output{parsers: []parser{p}}, nil
	}
	return nil, fmt.Errorf("--format %q is not one of %v", format, Formats())
}

// again returns an output of the same format for a command that is started
// again: its formats may count from zero, and no line goes on.
func (o *output) again() *output {
	next := &output{count: o.count, last: o.last}
	for _, p := range o.parsers {
		next.parsers = append(next.parsers, p.again())
	}
	return next
}

// write takes the bytes that arrived on a stream (0 or 1) at an instant and
// returns the epochs that they complete.
func (o *output) write(stream int, data []byte, at time.Time) []report {
	var all []report
	o.streams[stream].add(data, func(line []byte) { all = append(all, o.line(line, at)...) })
	return all
}

// close returns the epochs that the end of the output completes.
func (o *output) close(at time.Time) []report {
	var all []report
	for i := range o.streams {
		o.streams[i].end(func(line []byte) { all = append(all, o.line(line, at)...) })
	}
	for _, p := range o.parsers {
		if found := p.end(); len(found) > 0 {
			o.parsers = []parser{p}
			return append(all, found...)
		}
	}
	return all
}

func (o *output) line(line []byte, at time.Time) []report {
	o.count++
	o.last = quotable(line)
	for _, p := range o.parsers {
		if found := p.line(line, at); len(found) > 0 {
			o.parsers = []parser{p}
			return found
		}
	}
	return nil
}

// familiar tells whether the output is known to be of a format.
func (o *output) familiar() bool {
	for _, p := range o.parsers {
		if p.familiar() {
			return true
		}
	}
	return false
}

// maxQuote is how much of a line a message quotes.
const maxQuote = 160

// quotable returns the begin of a line for a message.
func quotable(line []byte) string {
	if len(line) > maxQuote {
		return string(line[:maxQuote]) + "…"
	}
	return string(line)
}

// reportedSeconds returns a duration that an epoch can have, else 0: none.
func reportedSeconds(seconds float64) float64 {
	if seconds > 0 && seconds <= schemas.MaxSLO.Seconds() {
		return seconds
	}
	return 0
}

// accuracyOf returns an accuracy, or nil for a number that is none.
func accuracyOf(v float64) *float64 {
	if v >= 0 && v <= 1 {
		return &v
	}
	return nil
}

// lossOf returns a loss, or nil for a number that JSON cannot carry: a network
// that diverged prints NaN.
func lossOf(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// batchOf returns a batch size, or 0 for a number that is none.
func batchOf(v float64) uint32 {
	if v >= 1 && v <= schemas.MaxBatchSize && v == math.Trunc(v) {
		return uint32(v)
	}
	return 0
}
