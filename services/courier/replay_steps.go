package main

import (
	"time"

	"courier/bus"
	"courier/schemas"
)

// step of a replay: a record is read, or what it says was answered is asked again.
type step struct {
	*bus.Record
	ask bool
}

// madeFrom returns the sequence in JOB up to which an advisor had read when it
// made what an event says, and when that was; ok is false for events of others.
// 0: nothing was stored, or an older version did not write it down.
func madeFrom(e schemas.Event) (cause uint64, at time.Time, ok bool) {
	switch e := e.(type) {
	case *schemas.Submitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.Advice:
		return e.CauseSequence, e.At, true
	case *schemas.Risk:
		return e.CauseSequence, e.At, true
	}
	return 0, time.Time{}, false
}

// ofJobs reports whether a record is of the stream of jobs.
func ofJobs(r *bus.Record) bool {
	switch r.Event.(type) {
	case *schemas.Sample, *schemas.Promoted, *schemas.Rejected, *schemas.Drift:
		return false
	}
	return true
}

// steps puts each question where it was asked: after its cause, and after the
// samples until then. An event between a cause and its advice was stored, but
// the advisor had not read it. Where the cause is not known the question stands
// right before what it led to.
//
//	JOB    7 started   8 epoch               9 epoch   10 advice, cause 8
//	asked                        10
func (l *replayLog) steps() []step {
	waiting := map[uint64][]*bus.Record{} // by cause
	known := map[uint64]bool{}
	asked := func(r *bus.Record) (cause uint64, late, ok bool) {
		cause, _, ok = madeFrom(r.Event)
		return cause, ok && known[cause] && cause < r.Sequence, ok
	}
	for i := range l.records {
		r := &l.records[i]
		if cause, late, _ := asked(r); late {
			waiting[cause] = append(waiting[cause], r)
		}
		if ofJobs(r) {
			known[r.Sequence] = true
		}
	}
	var all []step
	var due []*bus.Record
	for i := range l.records {
		r := &l.records[i]
		rest := due[:0]
		for _, d := range due {
			if _, at, _ := madeFrom(d.Event); ofJobs(r) || !at.After(r.StoredAt) {
				all = append(all, step{d, true})
			} else {
				rest = append(rest, d)
			}
		}
		due = rest
		if _, late, ok := asked(r); ok && !late {
			all = append(all, step{r, true})
		}
		all = append(all, step{r, false})
		if ofJobs(r) {
			due = append(due, waiting[r.Sequence]...)
		}
	}
	return all
}
