package main

import (
	"time"

	"courier/schemas"
)

// step of a replay: a record is read, or what it says was answered is asked again.
type step struct {
	*replayRecord
	ask bool
}

// changes reports whether the step is an event that changes the cluster state. Advice does not,
// unless it is in JOB: there it is older than the event that admits a job.
func (s *step) changes() bool { return !s.ask && s.stream != schemas.StreamAdvice }

// madeFrom returns the sequence in JOB up to which an advisor had read when it
// made what an event says, and when that was; ok is false for events of others, and
// for the advice of an admission, which the admission holds as well.
// 0: nothing was stored, or an older version did not write it down.
func madeFrom(r *replayRecord) (cause uint64, at time.Time, ok bool) {
	switch e := r.Event.(type) {
	case *schemas.Submitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.JobAdmitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.Advice:
		copied := r.stream == schemas.StreamAdvice && e.Action == schemas.ActionStart
		return e.CauseSequence, e.At, !copied
	case *schemas.Risk:
		return e.CauseSequence, e.At, true
	}
	return 0, time.Time{}, false
}

// ofJobs reports whether a record is of the stream JOB.
func ofJobs(r *replayRecord) bool { return r.stream == schemas.StreamJob }

// steps puts each question where it was asked: after its cause, and after the
// samples until then. An event between a cause and its advice was stored, but
// the advisor had not read it. Where the cause is not known the question stands
// right before what it led to.
//
//	JOB     7 started   8 epoch      9 epoch
//	ADVICE                                     4: cause 8
//	asked                         4
func (l *replayLog) steps() []step {
	waiting := map[uint64][]*replayRecord{} // by cause
	known := map[uint64]bool{}
	asked := func(r *replayRecord) (cause uint64, late, ok bool) {
		cause, _, ok = madeFrom(r)
		return cause, ok && known[cause] && (!ofJobs(r) || cause < r.Sequence), ok
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
	var due []*replayRecord
	for i := range l.records {
		r := &l.records[i]
		rest := due[:0]
		for _, d := range due {
			if _, at, _ := madeFrom(d); ofJobs(r) || !at.After(r.StoredAt) {
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
