package runner

import (
	"cmp"
	"time"

	"courier/runner/output"
	"courier/schemas"
)

// finishedEpoch is an epoch of this run: a report whose number counts from 1, with a duration.
type finishedEpoch struct {
	output.EpochReport
	source string // of Seconds: schemas.DurationReported or schemas.DurationArrival
}

// epochState is the state of a run's epochs. It follows from the reports alone.
type epochState struct {
	startedAt      time.Time // start of the first process; has the monotonic clock
	offset         uint32    // 1 for a job that counts from 0, otherwise 0
	last           uint32    // last epoch
	lastAt         time.Time // when it was reported
	done           uint32    // number of accepted epochs, with those that a report covers
	ignored        int       // reports with a repeated or smaller number, or without a duration
	hasReport      bool      // a report was added
	startupSeconds *float64  // until the first epoch; nil: unknown
	requested      uint32    // epochs that the user asked for; 0: unknown
	isExceeded     bool      // an epoch above the requested ones was reported
	isAssumed      bool      // the begin of the first one is unknown
	isPrinted      bool      // all ended at the same time, so that none is recorded

	held []output.EpochReport // the first ones, which wait for others
}

func newEpochState(startedAt time.Time) *epochState {
	return &epochState{startedAt: startedAt, lastAt: startedAt}
}

// hold returns the reports that need not wait. The first ones wait for one that ended later, which shows how
// long an epoch is, unless it is known when the first of them began.
func (f *epochState) hold(reports []output.EpochReport) []output.EpochReport {
	if f.hasReport || len(reports) == 0 {
		return reports
	}
	all := append(f.held, reports...)
	f.held = nil
	if isUntimed(&all[0]) && together(all) == len(all) {
		f.held, all = all, nil
	}
	return all
}

// rest returns the reports that have waited until the end. The time of several that ended together is unknown:
// it may be that of a log that was printed.
func (f *epochState) rest() []output.EpochReport {
	held := f.held
	f.held = nil
	if f.isPrinted = len(held) > 1; f.isPrinted {
		return nil
	}
	return held
}

// isUntimed reports whether the time of a first report includes the start-up. What the job itself states is taken
// at once.
func isUntimed(r *output.EpochReport) bool {
	return r.Seconds == 0 && r.BeganAt.IsZero() && !r.IsStated
}

// together returns the number of leading reports that ended at the same time.
func together(reports []output.EpochReport) (n int) {
	for n < len(reports) && reports[n].At.Sub(reports[0].At) < minPrintedDuration {
		n++
	}
	return n
}

// add takes reports, and returns the epochs that are accepted. A number must be greater than the
// previous one, and at most the number of requested epochs. An epoch without a reported duration lasts
// from the previous report to this one, by the monotonic clock. Unless the start of the first epoch was printed,
// the first epochs count as long as the later ones that come with them, and the rest of their time is the start-up.
func (f *epochState) add(reports []output.EpochReport) (accepted []finishedEpoch) {
	if !f.hasReport {
		f.separateStartup(reports)
	}
	for len(reports) > 0 {
		n := together(reports)
		accepted = append(accepted, f.addTogether(reports[:n])...)
		reports = reports[n:]
	}
	return accepted
}

// separateStartup sets when the first of the reports began.
func (f *epochState) separateStartup(reports []output.EpochReport) {
	n := together(reports)
	if n == len(reports) || !isUntimed(&reports[0]) {
		return
	}
	f.isAssumed = true
	first, last := &reports[0], &reports[n-1]
	next := &reports[n+together(reports[n:])-1]
	length := next.At.Sub(last.At) / time.Duration(max(1, int(next.Epoch)-int(last.Epoch)))
	length *= time.Duration(max(1, int(last.Epoch)-int(first.Epoch)+int(max(1, first.Epochs))))
	if length < last.At.Sub(f.startedAt) {
		first.BeganAt = last.At.Add(-length)
	}
}

// addTogether takes the reports that ended together. They share the time since the previous report,
// because the job has buffered them.
func (f *epochState) addTogether(reports []output.EpochReport) []finishedEpoch {
	var accepted []finishedEpoch
	previous, isFirst := f.last, !f.hasReport
	for _, r := range reports {
		if !f.hasReport {
			previous = f.addFirst(r)
		}
		number := r.Epoch + f.offset
		f.isExceeded = f.isExceeded || f.requested > 0 && number > f.requested
		if number <= f.last || number > cmp.Or(f.requested, schemas.MaxEpochs) {
			f.ignored++
			continue
		}
		f.done += min(max(r.Epochs, 1), number-f.last)
		f.last = number
		r.Epoch = number
		accepted = append(accepted, finishedEpoch{r, schemas.DurationReported})
	}
	if len(accepted) == 0 {
		return nil
	}

	last := &reports[len(reports)-1]
	at := last.At
	if !at.After(f.lastAt) && last.ReportedAt.After(f.lastAt) {
		at = last.ReportedAt // its lines were buffered with those of the previous epoch
	}
	accepted = f.timeByArrival(accepted, at.Sub(f.lastAt).Seconds()/float64(f.last-previous))
	f.lastAt = at
	for i := range accepted {
		e := &accepted[i]
		if e.At = at; isFirst && f.startupSeconds != nil { // so that the first one begins after the start-up
			e.At = at.Add(-time.Duration(float64(f.last-e.Epoch) * e.Seconds * 1e9))
		}
	}
	return accepted
}

// addFirst takes the first report of a run, and returns the number of the epoch before it. A run
// that continues from a checkpoint starts with a higher number. The start-up time is known if the
// report has a duration, or if the start of its epoch was printed.
func (f *epochState) addFirst(r output.EpochReport) (previous uint32) {
	f.hasReport = true
	if r.Epoch == 0 {
		f.offset = 1
	}
	epochs := min(max(r.Epochs, 1), r.Epoch+f.offset)
	f.last = r.Epoch + f.offset - epochs
	switch {
	case r.Seconds > 0:
		f.startupSeconds = new(max(0, r.At.Sub(f.startedAt).Seconds()-r.Seconds*float64(epochs)))
	case !r.BeganAt.IsZero() && r.At.Sub(r.BeganAt) >= minPrintedDuration:
		f.startupSeconds, f.lastAt = new(r.BeganAt.Sub(f.startedAt).Seconds()), r.BeganAt
	}
	return f.last
}

// minPrintedDuration is the minimum time between the lines of the start and the end of an epoch.
// Lines that arrive together were buffered, so their times do not measure the epoch.
const minPrintedDuration = 10 * time.Millisecond

// timeByArrival sets the duration of epochs without a reported one, and removes epochs that have
// no duration after that.
func (f *epochState) timeByArrival(epochs []finishedEpoch, seconds float64) []finishedEpoch {
	timed := epochs[:0]
	for _, e := range epochs {
		if e.Seconds == 0 && seconds > 0 && seconds <= schemas.MaxSLO.Seconds() {
			e.Seconds, e.source = seconds, schemas.DurationArrival
		}
		if e.Seconds == 0 {
			f.ignored++
			continue
		}
		timed = append(timed, e)
	}
	return timed
}

// firstSeconds returns the duration of an epoch in the first report of a process. It is 0 if the duration
// includes the start-up, which is unknown: that of a restarted process, or one before an epoch whose start was
// not printed.
func (f *epochState) firstSeconds(e finishedEpoch, isRestart bool) float64 {
	if e.source == schemas.DurationReported || f.startupSeconds != nil && !isRestart {
		return e.Seconds
	}
	return 0
}
