package output

import (
	"bytes"
	"regexp"
	"time"
)

// Parser turns the bytes that a job prints into reports.
type Parser struct {
	pattern    *pattern    // the user's; nil: the recogniser reads
	own        *Log        // of lines of Courier's own format
	recogniser *recogniser // of lines without a known form
	isKnown    bool        // the lines have a known form
	rounds     rounds
	streams    [2]splitter       // standard output and standard error
	reports    []EpochReport     // of the current call
	at         time.Time         // arrival of the current bytes
	count      int               // lines read, without the drawings of progress bars
	last       []byte            // beginning of the last line
	tail       [tailLines][]byte // beginnings of the last lines; that of line n is at n modulo tailLines
	noMemory   []byte            // beginning of the last line about missing memory
	noMemoryAt int               // its number
}

// New returns a parser of any output, or of lines that a regular expression describes, if it is not
// empty. Errors name the flag of the command line that is wrong.
func New(expression string) (*Parser, error) {
	p := &Parser{own: NewChannel(), rounds: rounds{least: minBlock}, recogniser: newRecogniser(0)}
	var err error
	if p.isKnown = expression != ""; p.isKnown {
		p.pattern, err = newPattern(expression)
	}
	return p, err
}

// SetEpochs sets the number of epochs that the user asked for. It must be called before Write.
func (p *Parser) SetEpochs(n uint32) { p.recogniser.requested = int(n) }

// SetStart sets when the command was started, if it is known. It must be called before Write.
func (p *Parser) SetStart(at time.Time) { p.recogniser.beganAt = at }

// SetMeasured sets how many epochs of the job's own loop have ended, if they are measured inside the training. The
// output need not confirm its numbers up to there.
func (p *Parser) SetMeasured(n uint32) { p.recogniser.measured = int(n) }

// Restart returns a parser of the same format for a command that was restarted. The command may
// count epochs and time from zero, and an unfinished line is discarded.
func (p *Parser) Restart() *Parser {
	next := &Parser{own: NewChannel(), rounds: rounds{least: p.rounds.least}, isKnown: p.isKnown}
	next.count, next.last, next.tail = p.count, p.last, p.tail
	next.own.values.chooser = p.own.values.chooser // what was learnt of percentages is kept
	if p.pattern != nil {
		next.pattern = &pattern{expression: p.pattern.expression}
	}
	next.recogniser = p.recogniser.restart()
	return next
}

// Write takes the bytes that arrived on a stream (0: standard output, 1: standard error), and
// returns the epochs that they complete.
func (p *Parser) Write(stream int, data []byte, at time.Time) []EpochReport {
	p.at, p.reports = at, nil
	p.streams[1-stream].show(p.line)
	p.streams[stream].add(data, at, p.line)
	return p.reported()
}

// Close returns the epochs that the end of the output completes. A command that failed did not end
// its last epoch, unless it printed the line that ends an epoch.
func (p *Parser) Close(at time.Time, succeeded bool) []EpochReport {
	p.at, p.reports = at, nil
	for i := range p.streams {
		p.streams[i].end(p.line, true)
	}
	if p.pattern != nil {
		p.reports = append(p.reports, p.pattern.line(nil, true, at)...)
	}
	if !p.isKnown {
		p.reports = append(p.reports, p.rounds.add(p.recogniser.finish(at, succeeded), p.recogniser)...)
		p.reports = append(p.reports, p.rounds.release()...)
	}
	return p.reported()
}

// reported returns the reports of the current call, with its time.
func (p *Parser) reported() []EpochReport {
	for i := range p.reports {
		p.reports[i].ReportedAt = p.at
	}
	return p.reports
}

// line takes a line, or a drawing of a line that may be drawn again.
func (p *Parser) line(line []byte, isFinal bool, at time.Time) {
	begin := line[:min(len(line), maxExcerptBytes+1)]
	if len(line) > 0 {
		p.last = append(p.last[:0], begin...)
	}
	if isFinal {
		kept := &p.tail[p.count%tailLines]
		*kept = append((*kept)[:0], begin...)
		p.count++
	}
	if isOutOfMemory(line) {
		p.noMemory, p.noMemoryAt = append(p.noMemory[:0], p.last...), p.count
	}
	switch {
	case p.pattern != nil:
		p.reports = append(p.reports, p.pattern.line(line, isFinal, at)...)
	case len(line) == 0:
	case line[0] == '{' && ownLine.Match(line):
		found := p.own.line(line, at)
		p.reports = append(p.reports, found...)
		if len(found) > 0 {
			p.isKnown, p.recogniser = true, newRecogniser(p.recogniser.requested)
		}
	case !p.isKnown:
		if bytes.Contains(line, []byte("%|")) {
			if open := openBar.FindSubmatch(line); open != nil {
				p.recognise(open[1], at)
				line = line[len(open[1]):]
			}
		}
		p.recognise(line, at)
	}
}

func (p *Parser) recognise(line []byte, at time.Time) {
	p.reports = append(p.reports, p.rounds.add(p.recogniser.line(line, at), p.recogniser)...)
}

// openBar matches a progress bar without a line break, behind which another line was printed.
var openBar = regexp.MustCompile(`^([^|]*\d%\|[^|]*\| *\d+/\d+ \[[^\]]*\])\S`)

// Recognized reports whether the output contained a line of a known format, or a counter of epochs.
func (p *Parser) Recognized() bool {
	r := p.recogniser
	return p.own.isSeen || r.isConfirmed || r.class == countsEpochs && r.current != nil
}

// Follows reports whether the output has a counter that may count epochs.
func (p *Parser) Follows() bool { return p.Recognized() || p.recogniser.current != nil }

// Exceeded reports whether the output counted more epochs than SetEpochs set.
func (p *Parser) Exceeded() bool { return p.recogniser.isExceeded }

// Repeats reports whether the output counted from the first epoch again, as for the next fold or a second training.
func (p *Parser) Repeats() bool { return p.recogniser.isOver && p.recogniser.current != nil }

// StepsPerEpoch returns the steps between two evaluations that count as an epoch, because the output
// counts steps alone. It is 0 for all other outputs.
func (p *Parser) StepsPerEpoch() uint32 {
	if p.recogniser.class != countsSteps {
		return 0
	}
	return p.recogniser.stepsPerEpoch
}

// Lines returns the number of lines read.
func (p *Parser) Lines() int { return p.count }

// tailLines is the number of lines that Tail returns.
const tailLines = 20

// Tail returns the beginnings of the last lines.
func (p *Parser) Tail() (lines []string) {
	for n := max(0, p.count-tailLines); n < p.count; n++ {
		lines = append(lines, excerpt(p.tail[n%tailLines]))
	}
	return lines
}

// Suggest returns the line of the output that most resembles an epoch, and a pattern for
// New that reads it and others of the last lines. The pattern is empty if there is none,
// and the line is then the last one.
func (p *Parser) Suggest() (line, pattern string) {
	r := p.recogniser
	if r.suggests.rises && (r.requested == 0 || r.suggests.most <= float64(r.requested)) {
		return r.suggests.text, r.suggests.pattern
	}
	return excerpt(p.last), ""
}

// minBlock is the minimum time between two reports of boosting rounds. Rounds can be so short that
// an event each would be more work than the training.
const minBlock = 200 * time.Millisecond

// rounds joins reports of rounds, so that one covers several. Epochs pass.
type rounds struct {
	least      time.Duration // minimum time between two reports
	block      *EpochReport  // rounds that have not been reported
	reportedAt time.Time
}

func (b *rounds) add(found []EpochReport, r *recogniser) []EpochReport {
	if r.class >= countsShare || r.class == countsSteps {
		return found
	}
	var reports []EpochReport
	for _, e := range found {
		if last := b.block; last != nil {
			e.Epochs += last.Epochs
			e.BeganAt = last.BeganAt
		}
		if b.block = &e; e.At.Sub(b.reportedAt) >= b.least {
			reports = append(reports, b.release()...)
		}
	}
	return reports
}

// release returns the rounds that have not been reported.
func (b *rounds) release() (reports []EpochReport) {
	if b.block != nil {
		reports, b.reportedAt = append(reports, *b.block), b.block.At
	}
	b.block = nil
	return reports
}
