package tune

import (
	"fmt"
	"time"
)

// Tuning is a tuning with what was measured. It is not safe for concurrent use.
type Tuning struct {
	o       Options
	dir     string
	record  *record
	state   *tuningState
	opened  time.Time   // has the monotonic clock
	before  float64     // elapsed seconds when it was opened
	cpus    []int       // planned for each stage
	planned *plannedFor // nil: nothing is planned yet
	report  func(TuningProgress)
	needs   string // bound that all stages need by the last plan; empty: they keep that of the user
	stopped string // why the segments were stopped; empty: they were not
}

// plannedFor is what the current plan rests on.
type plannedFor struct {
	continues bool
	isAssumed bool // no times were measured
	stage     int
}

// Open opens the tuning in a directory, which is created if it does not exist. If it has a tuning
// with the same design, that continues; another design is an error. The caller calls Close.
func Open(dir string, o Options) (*Tuning, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	r, lines, err := openRecord(dir, o)
	if err != nil {
		return nil, err
	}
	t := &Tuning{o: o, dir: dir, record: r, state: newState(o)}
	t.cpus = make([]int, len(t.state.stages))
	for i := range lines {
		t.state.apply(&lines[i])
	}
	t.before, t.opened = t.state.elapsed, time.Now()
	return t, t.add(&recordLine{Kind: kindOpen})
}

// Close closes the record.
func (t *Tuning) Close() error { return t.record.file.Close() }

// elapsed returns the seconds of the tuning, without interruptions.
func (t *Tuning) elapsed() float64 { return t.before + time.Since(t.opened).Seconds() }

// add stores a line and applies it.
func (t *Tuning) add(l *recordLine) error {
	l.Elapsed = t.elapsed()
	if err := t.record.append(l); err != nil {
		return fmt.Errorf("store the tuning: %w", err)
	}
	t.state.apply(l)
	return nil
}
