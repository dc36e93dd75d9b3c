package replay

import (
	"time"

	"courier/schemas"
)

// step is a step of a replay: it applies a record, or repeats the decision in the record.
type step struct {
	*LogRecord
	decide bool
}

// changesState reports whether the step is an event that changes the cluster state. Advice does
// not, except in JOB: there it is older than the event that admits a job.
func (s *step) changesState() bool { return !s.decide && s.Stream != schemas.StreamAdvice }

// madeFrom returns the sequence in JOB up to which the advisor had read when it made the decision
// of a record, and the time of the decision. A cause of 0 means that nothing was stored before, or
// that an older release did not record it. ok is false for records without a decision, and for the
// advice of an admission, which the admission holds as well.
func (r *LogRecord) madeFrom() (cause uint64, at time.Time, ok bool) {
	switch e := r.Event.(type) {
	case *schemas.Submitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.JobAdmitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.Advice:
		ofAdmission := r.Stream == schemas.StreamAdvice && e.Action == schemas.ActionStart
		return e.CauseSequence, e.At, !ofAdmission
	case *schemas.Risk:
		return e.CauseSequence, e.At, true
	}
	return 0, time.Time{}, false
}

// ofJobs reports whether a record is in the stream JOB.
func (r *LogRecord) ofJobs() bool { return r.Stream == schemas.StreamJob }

// steps puts each decision where it was made: after its cause, and after the samples stored until
// then. The advisor had not read an event that was stored between a cause and its advice. Without a
// known cause the decision comes right before the record that holds it.
//
//	JOB      7 started   8 epoch      9 epoch
//	ADVICE                                     4: cause 8
//	decided                        4
func (l *Log) steps() []step {
	waiting := map[uint64][]*LogRecord{} // by cause
	known := map[uint64]bool{}           // sequences of JOB
	madeEarlier := func(r *LogRecord) (cause uint64, earlier, ok bool) {
		cause, _, ok = r.madeFrom()
		return cause, ok && known[cause] && (!r.ofJobs() || cause < r.Sequence), ok
	}
	for i := range l.Records {
		r := &l.Records[i]
		if cause, earlier, _ := madeEarlier(r); earlier {
			waiting[cause] = append(waiting[cause], r)
		}
		if r.ofJobs() {
			known[r.Sequence] = true
		}
	}

	var all []step
	var ready []*LogRecord // decisions whose causes have been applied
	for i := range l.Records {
		r := &l.Records[i]
		rest := ready[:0]
		for _, d := range ready {
			if _, at, _ := d.madeFrom(); r.ofJobs() || !at.After(r.StoredAt) {
				all = append(all, step{d, true})
			} else {
				rest = append(rest, d)
			}
		}
		ready = rest

		if _, earlier, ok := madeEarlier(r); ok && !earlier {
			all = append(all, step{r, true})
		}
		all = append(all, step{r, false})
		if r.ofJobs() {
			ready = append(ready, waiting[r.Sequence]...)
		}
	}
	return all
}
