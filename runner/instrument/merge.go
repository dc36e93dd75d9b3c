package instrument

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"courier/runner/output"
	"courier/schemas"
)

// Limits of waiting for the epochs of the output.
const (
	maxHeld      = 8           // epochs of each source
	maxMeasured  = 3           // epochs of a known loop
	minCompared  = 0.2         // seconds of an epoch whose number is compared with the output
	maxDiffering = 2           // epochs with another number in the output until it is reported
	quiet        = time.Second // a measured epoch waits so long for a job that prints none
)

// unit is a measured epoch, or a block of short ones.
type unit struct {
	report    output.EpochReport
	beganAt   time.Time
	arrivedAt time.Time // after the first step of the next one
	isKnown   bool      // by a framework or by the script's loop
}

// Merge joins the epochs that the instrumentation measures with those of the output.
type Merge struct {
	// BatchSize is what the job was asked to use.
	BatchSize uint32

	values        *output.Values
	lead          int       // connection of the job's process; 0: none
	ended         bool      // the lead has ended
	world         uint32    // processes that train together
	base          uint32    // epochs of earlier processes
	last          uint32    // last measured epoch
	lastKnown     uint32    // last one of a known loop
	begun         time.Time // when the script's loop over epochs began, if its epochs are printed
	loopBatchSize uint32    // of the batches of that loop; 0: unknown
	offset        uint32    // of the printed numbers

	unitAt   time.Time // begin of the running epoch
	progress progress  // within it

	state   state
	units   []unit               // measured epochs that wait for their text
	texts   []output.EpochReport // epochs of the output
	notes   []string
	isNoted bool
	isBased bool // the first text was seen, and isZero is set
	isZero  bool // the printed numbers begin at 0

	differing int  // epochs in a row with another number in the output
	isOffset  bool // a measured epoch was returned: offset stays
}

// progress is how many batches of an epoch were done at an instant.
type progress struct {
	ratio float64
	at    time.Time
}

// Progress returns the share of the running epoch that is done, and its estimated duration; 0 if they are
// unknown. Between two messages the batches take as long as before.
func (m *Merge) Progress(now time.Time) (ratio, seconds float64) {
	if !m.IsMeasuring() || m.progress.ratio == 0 || !m.progress.at.After(m.unitAt) {
		return 0, 0
	}
	seconds = m.progress.at.Sub(m.unitAt).Seconds() / m.progress.ratio
	return min(1, now.Sub(m.unitAt).Seconds()/seconds), seconds
}

type state int

const (
	undecided state = iota // no training has begun inside, and nothing was returned
	measured
	printed
)

// NewMerge returns a Merge that has read nothing.
func NewMerge() *Merge { return &Merge{values: new(output.Values)} }

// Restart forgets what the command has measured that is started again.
func (m *Merge) Restart() {
	*m = Merge{
		BatchSize: m.BatchSize,
		values:    new(output.Values),
		state:     m.state,
		isNoted:   m.isNoted,
	}
	if m.state == measured {
		m.state = undecided
	}
}

// IsMeasuring reports whether the epochs come from inside the training.
func (m *Merge) IsMeasuring() bool { return m != nil && m.state == measured }

// Known returns how many epochs of a framework or of the script's loop have ended.
func (m *Merge) Known() uint32 { return m.lastKnown }

// Notes returns the messages for the user since the previous call.
func (m *Merge) Notes() []string {
	notes := m.notes
	m.notes = nil
	return notes
}

// Line takes a line of a connection, which are numbered from 1.
func (m *Merge) Line(connection int, line []byte, at time.Time) {
	var msg message
	if json.Unmarshal(line, &msg) != nil {
		return
	}
	switch {
	case msg.Type == "loop":
		if m.begun.IsZero() {
			m.begun = at.Add(-seconds(msg.Ago))
		}
		if msg.BatchSize <= schemas.MaxBatchSize {
			m.loopBatchSize = cmp.Or(m.loopBatchSize, msg.BatchSize)
		}
	case msg.Type == "fit" && (m.lead == 0 || m.ended):
		m.lead, m.ended, m.base, m.world = connection, false, m.last, max(1, msg.World)
		m.unitAt, m.progress = at.Add(-seconds(msg.Ago)), progress{}
		if m.state == undecided {
			m.state = measured
		}
	case connection != m.lead || m.state != measured:
	case msg.Type == "end":
		m.ended, m.progress = true, progress{}
	case msg.Type == "progress" && msg.Batches > 0 && msg.Batches <= msg.Of:
		m.progress = progress{msg.Batches / msg.Of, at}
	case msg.Type == "unit" && msg.Epoch > 0 && msg.Seconds > 0:
		m.addUnit(&msg, at)
	}
}

// addUnit adds a measured epoch. Its metrics are chosen like those of a file of a logger.
func (m *Merge) addUnit(msg *message, at time.Time) {
	number := msg.Epoch
	if number <= m.base {
		number += m.base
	}
	endedAt := at.Add(-seconds(msg.Ago))
	r := m.values.Report(output.EpochReport{
		Epoch:     number,
		Epochs:    max(msg.Count, 1),
		Seconds:   msg.Seconds,
		BatchSize: m.batchSizeOf(msg),
		Phases:    msg.phases(),
		At:        endedAt,
	}, msg.Values)
	m.last, m.unitAt, m.progress = number, endedAt, progress{}
	isKnown := msg.IsLoop || msg.Source != "torch"
	if isKnown {
		m.lastKnown = number
	}
	m.units = append(m.units, unit{
		report:    r,
		beganAt:   endedAt.Add(-seconds(msg.Seconds * float64(r.Epochs))),
		arrivedAt: at,
		isKnown:   isKnown,
	})
}

// batchSizeOf returns the measured batch size, or the requested one if that counts the samples of all
// processes or of all batches of a step. It returns 0 for a size that no job may have.
func (m *Merge) batchSizeOf(msg *message) uint32 {
	if msg.BatchSize > schemas.MaxBatchSize {
		return 0
	}
	accumulated := uint32(1)
	if msg.Steps > 0 && msg.Batches > msg.Steps {
		accumulated = uint32(msg.Batches/msg.Steps + 0.5)
	}
	for _, times := range []uint32{accumulated, m.world, accumulated * m.world} {
		if msg.BatchSize > 0 && msg.BatchSize*times == m.BatchSize {
			return m.BatchSize
		}
	}
	return msg.BatchSize
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Text takes epochs of the output or of a metrics file, and returns those that count as they are.
func (m *Merge) Text(reports []output.EpochReport) []output.EpochReport {
	if len(reports) == 0 {
		return nil
	}
	if m.state != measured {
		r := &reports[0]
		isEarlier := !m.begun.IsZero() && (r.BeganAt.IsZero() || m.begun.Before(r.BeganAt))
		if m.state == undecided && r.Epoch <= 1 && isEarlier {
			r.BeganAt = m.begun
		}
		m.state = printed
		for i := range reports {
			reports[i].BatchSize = cmp.Or(reports[i].BatchSize, m.loopBatchSize)
		}
		return reports
	}
	if !m.isBased {
		m.isBased, m.isZero = true, reports[0].Epoch == 0
	}
	for _, r := range reports {
		if m.isZero {
			r.Epoch++
		}
		m.texts = append(m.texts, r)
	}
	return nil
}

// Take returns the measured epochs that need not wait for the output any longer. counts is whether the
// output counts epochs, isEnd whether the job has ended.
func (m *Merge) Take(now time.Time, counts, isEnd bool) []output.EpochReport {
	if m.state != measured {
		return nil
	}
	if m.givesWay(isEnd) {
		m.state = printed
		texts := m.texts
		m.units, m.texts = nil, nil
		return texts // counted from 1
	}
	var reports []output.EpochReport
	for len(m.units) > 0 {
		u, limit := &m.units[0], maxHeld
		if u.isKnown {
			limit = maxMeasured
		} else if !m.isOffset && counts && len(m.texts) < 2 && !isEnd && len(m.units) <= limit {
			break // two printed epochs show whether they are the same ones
		}
		text, isOver := m.textOf(u)
		isDone := text != nil || isOver || u.isKnown && hasMetric(&u.report) || isEnd ||
			len(m.units) > limit || !counts && now.Sub(u.arrivedAt) >= quiet
		if !isDone {
			break
		}
		reports = append(reports, m.complete(u, text))
		m.units = m.units[1:]
	}
	m.texts = m.texts[max(0, len(m.texts)-maxHeld):]
	return reports
}

// givesWay reports whether the epochs of the output count instead: nothing was measured, or several
// measured epochs were inferred from each printed one.
func (m *Merge) givesWay(isEnd bool) bool {
	texts := len(m.texts)
	if texts == 0 || m.last > 0 && len(m.units) == 0 {
		return false
	}
	if len(m.units) == 0 {
		return texts >= maxMeasured || isEnd
	}
	u := &m.units[0]
	if u.isKnown || m.last > u.report.Epoch+uint32(len(m.units)) || m.isOffset {
		return false
	}
	covered := 0 // units that end before the last text does
	for i := range m.units {
		if m.units[i].report.At.Sub(m.texts[texts-1].At) < seconds(m.units[i].report.Seconds/2) {
			covered += int(m.units[i].report.Epochs)
		}
	}
	if texts < 2 || covered < 2*texts-1 {
		return false
	}
	m.note("the training passes over its data %d times in %d epochs that it prints: the printed "+
		"epochs count", covered, texts)
	return true
}

// textOf returns the epoch of the output that belongs to a unit: the one with its number, or else the
// last one within its time. It removes the epochs up to there. isOver reports that a later one exists.
func (m *Merge) textOf(u *unit) (text *output.EpochReport, isOver bool) {
	length := seconds(u.report.Seconds)
	grace := min(length/10, maxGrace)
	n, within := 0, 0
	for i := range m.texts {
		t := &m.texts[i]
		if t.At.After(u.beganAt.Add(grace)) && t.At.Before(u.report.At.Add(-grace)) {
			within++
		}
		isNamed := t.Epoch == u.report.Epoch+m.offset && t.At.Before(u.arrivedAt.Add(length/2))
		if t.At.After(u.arrivedAt.Add(grace)) && !isNamed {
			isOver = true
			break
		}
		n = i + 1
		if t.At.After(u.beganAt.Add(grace)) {
			text = t
		}
		if isNamed && t.At.After(u.report.At.Add(-grace)) {
			break
		}
	}
	m.texts = m.texts[n:]
	if within > 1 && u.report.Epochs == 1 {
		m.differing++ // they are parts of the unit
		return nil, true
	}
	return text, isOver
}

// maxGrace is how late the output may be read after a message about the same time.
const maxGrace = 50 * time.Millisecond

func hasMetric(r *output.EpochReport) bool { return r.Accuracy != nil || r.Metric.Name != "" }

// complete returns the report of a unit with what its text adds. A text with another number adds
// nothing.
func (m *Merge) complete(u *unit, text *output.EpochReport) output.EpochReport {
	r := u.report
	if text != nil && !m.isOffset {
		switch {
		case r.Epoch == 1 && text.Epoch > 2 && !u.isKnown:
			m.offset = text.Epoch - r.Epoch // it was resumed
		case r.Epoch == text.Epoch+1 && u.isKnown: // resumed, and counted from 0
			m.isZero = true
			text.Epoch++
			for i := range m.texts {
				m.texts[i].Epoch++
			}
		}
	}
	m.isOffset = true
	r.Epoch += m.offset
	switch {
	case text == nil:
		if m.differing >= maxDiffering {
			m.note("the output has more epochs than the training measures: the measured epochs count")
		}
		return r
	case text.Epoch == r.Epoch:
		m.differing = 0
	case text.Epoch+1 == r.Epoch || r.Epoch+1 == text.Epoch: // a line at the edge of two units
		return r
	case r.Epochs == 1 && r.Seconds >= minCompared:
		if m.differing++; m.differing == maxDiffering {
			m.note("the training measures epoch %d where its output has epoch %d: the measured epochs "+
				"count", r.Epoch, text.Epoch)
		}
		return r
	default: // too short to tell in which epoch the output was printed
		return r
	}
	if r.Loss == nil && !text.IsLossHeldOut {
		r.Loss = text.Loss
	}
	if !hasMetric(&r) || r.Accuracy == nil && text.Accuracy != nil {
		r.Accuracy, r.Metric, r.ValidationSamples = text.Accuracy, text.Metric, text.ValidationSamples
	}
	r.CPUs = text.CPUs
	return r
}

// note adds a message about a disagreement; only the first one counts.
func (m *Merge) note(format string, a ...any) {
	if !m.isNoted {
		m.isNoted = true
		m.notes = append(m.notes, fmt.Sprintf(format, a...))
	}
}
