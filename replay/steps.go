package replay

// step is a step of a replay: it applies a record, or repeats the decision in the record.
type step struct {
	*LogRecord
	decide bool
}

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
