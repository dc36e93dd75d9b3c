package output

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Formats of a job's output.
const (
	FormatAuto    = "auto"    // whichever of BigDL, JSON and text reports the first epoch
	FormatBigDL   = "bigdl"   // the log of BigDL's optimizers
	FormatJSON    = "json"    // a JSON object or a dictionary of Python per epoch
	FormatText    = "text"    // lines and progress bars with the number of the epoch
	FormatPattern = "pattern" // the user's own regular expression
)

// Formats lists every format.
func Formats() []string {
	return []string{FormatAuto, FormatBigDL, FormatJSON, FormatText, FormatPattern}
}

// EpochReport is what a job's output contains about one epoch.
type EpochReport struct {
	Epoch             uint32    // number as printed; some jobs count from 0
	Epochs            uint32    // epochs that the report covers, up to Epoch; 0 means 1
	Seconds           float64   // duration; 0: not reported
	Loss              *float64  // training loss; nil: not reported
	Accuracy          *float64  // 0 to 1; nil: not reported
	Metric            Metric    // behind Accuracy, or a loss on held-out data without one
	ValidationSamples uint64    // number of samples behind Accuracy; 0: not reported
	BatchSize         uint32    // batch size of the epoch; 0: not reported
	CPUs              uint32    // CPUs of the epoch; 0: not reported
	At                time.Time // arrival of its last line
	ReportedAt        time.Time // arrival of the line that showed that the epoch had ended
	BeganAt           time.Time // arrival of the first line about the epoch; zero: unknown
}

// lineFormat parses one format. It is given every line in order.
type lineFormat interface {
	// Line returns the epochs that a line completes: usually none, otherwise one.
	Line(line []byte, at time.Time) []EpochReport

	// End returns the epoch that the end of the output completes, if any.
	End() []EpochReport

	// restart returns a parser of the same format that has read nothing.
	restart() lineFormat

	// recognized reports whether a line of this format was read.
	recognized() bool
}

// redrawFormat is a format that reads the drawings of progress bars. Of other formats, the last
// drawing with an epoch counts.
type redrawFormat interface {
	lineFormat

	// Redraw takes a line that is drawn again.
	Redraw(line []byte, at time.Time) []EpochReport
}

var (
	_ lineFormat   = (*BigDL)(nil)
	_ lineFormat   = (*jsonLines)(nil)
	_ lineFormat   = (*pattern)(nil)
	_ redrawFormat = (*text)(nil)
)

// Parser turns the bytes that a job prints into reports.
type Parser struct {
	formats    []lineFormat  // after the first report, only the format that reported it
	streams    [2]lines      // standard output and standard error
	drawn      []EpochReport // of the last drawing of a progress bar, which may be drawn again
	candidates candidates    // while no epoch is recognized
	count      int           // lines read, without the drawings of progress bars
	lastLine   string        // shortened
}

// New returns a parser of a format. An expression without a format implies FormatPattern. Errors
// name the flag of the command line that is wrong.
func New(format, expression string) (*Parser, error) {
	if expression != "" && (format == "" || format == FormatAuto) {
		format = FormatPattern
	}
	if expression != "" && format != FormatPattern {
		return nil, fmt.Errorf("--epoch-pattern requires --format %s, not %s", FormatPattern, format)
	}

	switch format {
	case FormatAuto, "":
		return &Parser{formats: []lineFormat{&BigDL{}, &jsonLines{}, &text{}}}, nil
	case FormatBigDL:
		return &Parser{formats: []lineFormat{&BigDL{}}}, nil
	case FormatJSON:
		return NewJSON(), nil
	case FormatText:
		return &Parser{formats: []lineFormat{&text{}}}, nil
	case FormatPattern:
		p, err := newPattern(expression)
		if err != nil {
			return nil, err
		}
		return &Parser{formats: []lineFormat{p}}, nil
	}
	return nil, fmt.Errorf("invalid --format %q: want %s", format, strings.Join(Formats(), ", "))
}

// NewJSON returns a parser of FormatJSON.
func NewJSON() *Parser { return &Parser{formats: []lineFormat{&jsonLines{}}} }

// Restart returns a parser of the same format for a command that was restarted. The command may
// count epochs and time from zero, and an unfinished line is discarded.
func (p *Parser) Restart() *Parser {
	next := &Parser{count: p.count, lastLine: p.lastLine}
	for _, f := range p.formats {
		next.formats = append(next.formats, f.restart())
	}
	return next
}

// Write takes the bytes that arrived on a stream (0: standard output, 1: standard error), and
// returns the epochs that they complete.
func (p *Parser) Write(stream int, data []byte, at time.Time) []EpochReport {
	var reports []EpochReport
	p.streams[stream].add(data, func(line []byte, isFinal bool) {
		reports = append(reports, p.line(line, at, isFinal)...)
	})
	return reportedAt(reports, at)
}

// reportedAt sets when epochs were reported.
func reportedAt(reports []EpochReport, at time.Time) []EpochReport {
	for i := range reports {
		reports[i].ReportedAt = at
	}
	return reports
}

// Close returns the epochs that the end of the output completes.
func (p *Parser) Close(at time.Time) []EpochReport {
	var reports []EpochReport
	for i := range p.streams {
		p.streams[i].end(func(line []byte, isFinal bool) {
			reports = append(reports, p.line(line, at, isFinal)...)
		}, true)
	}
	reports = append(reports, p.drawn...)
	p.drawn = nil
	for _, f := range p.formats {
		if found := f.End(); len(found) > 0 {
			p.formats = []lineFormat{f}
			return reportedAt(append(reports, found...), at)
		}
	}
	return reportedAt(reports, at)
}

func (p *Parser) line(line []byte, at time.Time, isFinal bool) []EpochReport {
	if isFinal {
		p.count++
		p.lastLine = excerpt(line)
		if !p.Recognized() {
			p.candidates.add(p.lastLine)
		}
	}
	for _, f := range p.formats {
		var found []EpochReport
		redraw, ok := f.(redrawFormat)
		switch {
		case isFinal:
			found = p.drawnBefore(f.Line(line, at))
		case ok:
			found = redraw.Redraw(line, at)
		default:
			drawn := f.Line(line, at)
			if len(drawn) == 0 {
				continue
			}
			p.formats = []lineFormat{f}
			previous := p.drawn
			p.drawn = drawn
			if len(previous) > 0 && previous[0].Epoch != drawn[0].Epoch {
				return previous
			}
			return nil
		}
		if len(found) > 0 {
			p.formats = []lineFormat{f}
			return found
		}
	}
	return nil
}

// drawnBefore returns the reports of a line behind those of the last drawing, unless the line is
// about the same epoch.
func (p *Parser) drawnBefore(found []EpochReport) []EpochReport {
	if len(found) == 0 || len(p.drawn) == 0 {
		return found
	}
	drawn := p.drawn
	p.drawn = nil
	if drawn[0].Epoch == found[0].Epoch {
		return found
	}
	return append(slices.Clone(drawn), found...)
}

// Recognized reports whether the output contained a line of a known format.
func (p *Parser) Recognized() bool {
	for _, f := range p.formats {
		if f.recognized() {
			return true
		}
	}
	return false
}

// Lines returns the number of lines read.
func (p *Parser) Lines() int { return p.count }

// LastLine returns the beginning of the last line.
func (p *Parser) LastLine() string { return p.lastLine }

// maxExcerptBytes is the length of a line in a message.
const maxExcerptBytes = 160

// excerpt returns the beginning of a line for a message.
func excerpt(line []byte) string {
	if len(line) > maxExcerptBytes {
		return string(line[:maxExcerptBytes]) + "…"
	}
	return string(line)
}

// validSeconds returns a duration, or 0 if an epoch cannot have it.
func validSeconds(seconds float64) float64 {
	if seconds > 0 && seconds <= schemas.MaxSLO.Seconds() {
		return seconds
	}
	return 0
}

// validAccuracy returns an accuracy, or nil if it is outside 0 to 1.
func validAccuracy(v float64) *float64 {
	if v >= 0 && v <= 1 {
		return &v
	}
	return nil
}

// validLoss returns a loss, or nil if it is not finite. A diverged network prints NaN, which
// JSON cannot represent.
func validLoss(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// validCount returns a count from 1 to a maximum, or 0 if the number is not a valid one.
func validCount(v, most float64) uint32 {
	if v >= 1 && v <= most && v == math.Trunc(v) {
		return uint32(v)
	}
	return 0
}
