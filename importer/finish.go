package importer

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// Finish schedules the runs without timestamps, rejects copies and runs in the future, sets the job IDs, and
// returns all runs, oldest first.
func (r *Reader) Finish() ReadResult {
	next, latest := r.o.Since, r.latestSince()
	enough := max(minDigits, math.Log10(1000*float64(len(r.found.Runs))))
	seen, times := map[string]int{}, map[string]*PastRun{}
	r.found.Runs = slices.DeleteFunc(r.found.Runs, func(run *PastRun) bool {
		why := r.schedule(run, &next, latest)
		if why == nil {
			why = run.checkCopy(times, enough)
		}
		if why == nil {
			why = r.checkEnd(run, latest)
		}
		if why != nil {
			r.refuse(run.Place, why)
			return true
		}
		content := run.content()
		run.name(content, seen[content])
		seen[content]++
		return false
	})
	slices.SortStableFunc(r.found.Runs, func(a, b *PastRun) int { return a.StartedAt.Compare(b.StartedAt) })
	return r.found
}

// schedule sets the start of a run without timestamps to next, so that such runs are not co-located. With latest
// as Options.Since they end in time.
func (r *Reader) schedule(run *PastRun, next *time.Time, latest string) *Refusal {
	if !run.timeless {
		return nil
	}
	if r.o.Since.IsZero() {
		return refuse(ReasonMissing, FieldStartedAt,
			"missing in the source: give --since, such as --since %s, to schedule such runs sequentially", latest)
	}
	run.StartedAt = *next
	*next = run.EndedAt().Add(time.Second)
	r.found.LaidOut++
	return nil
}

// checkEnd rejects a run that ends in the future.
func (r *Reader) checkEnd(run *PastRun, latest string) *Refusal {
	end := run.EndedAt().UTC().Format(time.RFC3339)
	switch {
	case r.o.Now.IsZero() || !run.EndedAt().After(r.o.Now):
		return nil
	case run.timeless:
		return refuse(ReasonFuture, "since", "the run would end at %s, in the future: --since %s would do", end, latest)
	}
	return refuse(ReasonFuture, FieldEndedAt, "%s is in the future", end)
}

// latestSince returns the last date from which the runs without timestamps end before Options.Now.
func (r *Reader) latestSince() string {
	end := cmp.Or(r.o.Now, time.Date(2020, time.October, 31, 0, 0, 0, 0, time.UTC))
	for _, run := range r.found.Runs {
		if run.timeless {
			end = end.Add(-duration(run.Seconds) - time.Second)
		}
	}
	return end.UTC().AddDate(0, 0, -1).Format(time.DateOnly) // whatever the zone of the date
}

// minDigits is the minimum number of digits that identify a copy.
const minDigits = 6

// checkCopy rejects a run with exactly the time of an earlier one, which times has. In Courier's published study
// a script repeated the previous time for a log without one. Times with few digits coincide by chance, so the
// times need enough digits that a coincidence in the import has a probability below one in a thousand.
func (r *PastRun) checkCopy(times map[string]*PastRun, enough float64) *Refusal {
	text, digits := r.timeText()
	if float64(digits) < enough {
		return nil
	}
	if o := times[text]; o != nil {
		return refuse(ReasonCopied, FieldSeconds, "%s s is exactly the time of %s", schemas.Clip(text), o.Place)
	}
	times[text] = r
	return nil
}

// timeText returns the time of the run, or the times of its epochs, as text, and the number of
// significant digits of the distinct times.
func (r *PastRun) timeText() (text string, digits int) {
	times := []string{strconv.FormatFloat(r.Seconds, 'f', -1, 64)}
	for i := range r.Epochs {
		times = append(times, strconv.FormatFloat(r.Epochs[i].Seconds, 'f', -1, 64))
	}
	if len(r.Epochs) > 0 {
		times = times[1:]
	}
	text = strings.Join(times, " ")
	slices.Sort(times)
	for _, s := range slices.Compact(times) {
		digits += len(strings.Trim(strings.ReplaceAll(s, ".", ""), "0"))
	}
	return text, digits
}
