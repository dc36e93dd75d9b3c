package importer

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// bigdl reads the log of a BigDL driver, which is one run. Package output parses the epochs, as for
// a running job. The batch size is taken from the first iteration. If lines begin with a timestamp,
// the time before the training is the start-up.
func (r *Reader) bigdl(name string, in io.Reader) error {
	l := &driverLog{
		zone:  cmp.Or(r.o.Zone, time.UTC),
		draft: &runDraft{Place: Place{File: name}, values: map[string]string{}},
	}
	if err := eachLine(in, l.line); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	l.draft.epochs = append(l.draft.epochs, l.log.End()...)
	d, why := l.end()
	if why != nil {
		r.read++
		r.refuse(d.Place, why)
		return nil
	}
	r.addRun(d)
	return nil
}

var (
	bigdlClock = regexp.MustCompile(
		`\[Epoch (\d+) (\d+)/(\d+)\]\[Iteration (\d+)\]\[Wall Clock ([0-9.]+(?:E-?\d+)?)\s?s\]`,
	)
	bigdlRecords = regexp.MustCompile(`\] ?Train(?:ed)? (\d+)(?:\.0)? (?:records )?in `)
	lineTime     = regexp.MustCompile(
		`^\[?(\d{4}-\d\d-\d\d|\d\d-\d\d-\d\d|\d\d/\d\d/\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d+)?)`,
	)
)

// driverLog is the state of reading a log.
type driverLog struct {
	zone  *time.Location
	draft *runDraft
	log   bigdlEpochs

	clock     float64   // last time since the start of the training, in seconds
	iteration uint64    // last iteration
	epoch     uint64    // epoch of the last iteration
	first     time.Time // first timestamp
	began     time.Time // start of the training according to its iterations
	broken    *Refusal
	brokenAt  int
}

func (l *driverLog) line(number int, line []byte) {
	if l.broken != nil || line == nil {
		return
	}
	at := l.time(line)
	for _, m := range bigdlClock.FindAllSubmatch(line, -1) {
		clock, err := strconv.ParseFloat(string(m[5]), 64)
		iteration, bad := strconv.ParseUint(string(m[4]), 10, 64)
		if err != nil || bad != nil {
			continue
		}
		if clock < l.clock || iteration < l.iteration {
			l.broken, l.brokenAt = refuse(ReasonMixed, FieldEpoch,
				"iteration %d at %g s follows iteration %d at %g s:"+
					" use a separate log for each job",
				iteration, clock, l.iteration, l.clock), number
			return
		}
		l.clock, l.iteration = clock, iteration
		if l.epoch, err = strconv.ParseUint(string(m[1]), 10, 32); err != nil {
			continue
		}
		if l.draft.values[FieldTrainingSamples] == "" {
			l.draft.values[FieldTrainingSamples] = string(m[3])
		}
		// Timestamps are truncated to seconds, so the latest start is closest to the true one.
		// Lines of a validation are excluded: they are logged long after their clock value.
		if began := at.Add(-duration(clock)); !at.IsZero() && bigdlRecords.Match(line) &&
			began.After(l.began) {
			l.began = began
		}
	}
	if m := bigdlRecords.FindSubmatch(line); m != nil && l.draft.values[FieldBatchSize] == "" {
		l.draft.values[FieldBatchSize] = string(m[1])
	}
	l.draft.epochs = append(l.draft.epochs, l.log.Line(line)...)
}

// time returns the timestamp of a line, or zero.
func (l *driverLog) time(line []byte) time.Time {
	m := lineTime.FindSubmatch(line)
	if m == nil {
		return time.Time{}
	}
	day := strings.ReplaceAll(string(m[1]), "/", "-")
	if len(day) == len("06-01-02") {
		day = "20" + day
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05",
		day+" "+strings.ReplaceAll(string(m[2]), ",", "."), l.zone)
	if err != nil {
		return time.Time{}
	}
	if l.first.IsZero() {
		l.first = at
	}
	return at
}

// end returns the run of the log.
func (l *driverLog) end() (*runDraft, *Refusal) {
	d := l.draft
	if l.broken != nil {
		d.Line = l.brokenAt
		return d, l.broken
	}
	if len(d.epochs) == 0 {
		return d, refuse(ReasonNothing, FieldEpoch,
			"the log has no completed epoch: want lines of BigDL such as [Epoch 1"+
				" 60032/60000][Iteration 469][Wall Clock 27.8s] Epoch finished.")
	}
	if last := d.epochs[len(d.epochs)-1].Number; l.epoch > uint64(last) {
		return d, refuse(ReasonUnfinished, FieldEpoch, "the log ends within epoch %d", l.epoch)
	}
	if l.began.IsZero() {
		return d, nil
	}
	started := l.began
	if l.first.Before(started) {
		d.values[FieldStartup] = fmt.Sprint(started.Sub(l.first).Seconds())
		started = l.first
	}
	d.values[FieldStartedAt] = started.Format(time.RFC3339Nano)
	return d, nil
}
