package collector

import (
	"fmt"
	"math"
	"strings"
	"time"

	"courier/schemas"
)

// progress is what the bar tells: a fold over epochs and advice.
type progress struct {
	epochs    uint32        // to run
	done      uint32        // newest epoch
	batchSize uint32        // that it runs with
	submitted time.Time     // carries the monotonic clock
	slo       time.Duration // 0: none
	finish    time.Time     // predicted; zero if unknown
}

// advise takes a prediction that arrived at an instant: the remaining time of a
// running job, or of all its epochs before it starts.
func (p *progress) advise(a *schemas.Advice, at time.Time) {
	p.finish = time.Time{}
	if a == nil || a.Chosen == nil {
		return
	}
	as := a.Chosen
	if as.BatchSize != p.batchSize { // it runs as it does, even if another batch size is advised
		if now := a.Running(p.batchSize, as.CPUs); now != nil {
			as = now
		}
	}
	if as.PredictedSeconds != nil {
		p.finish = at.Add(secondsOf(*as.PredictedSeconds))
	}
}

const barCells = 20

// line returns the bar at an instant:
//
//	[########............] 4/10 epochs, 12s, finish predicted in 18s, at 30s of 1m0s: SLO met
func (p *progress) line(now time.Time) string {
	share := 0.0
	if p.epochs > 0 {
		share = math.Min(1, float64(p.done)/float64(p.epochs))
	}
	full := int(share * barCells)
	var b strings.Builder
	fmt.Fprintf(&b, "[%s%s] %d/%d epochs, %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full), p.done, p.epochs, rounded(now.Sub(p.submitted)))
	switch {
	case p.finish.IsZero() && p.slo > 0:
		fmt.Fprintf(&b, " of %s, finish not predicted yet", rounded(p.slo))
	case p.finish.IsZero():
		b.WriteString(", finish not predicted yet")
	default:
		left := max(0, p.finish.Sub(now))
		whole := now.Add(left).Sub(p.submitted)
		fmt.Fprintf(&b, ", finish predicted in %s, at %s", rounded(left), rounded(whole))
		if p.slo > 0 {
			fmt.Fprintf(&b, " of %s: SLO %s", rounded(p.slo), verdict(whole, p.slo))
		}
	}
	return b.String()
}

func verdict(whole, slo time.Duration) string {
	if whole > slo {
		return "missed"
	}
	return "met"
}

// rounded returns a duration with about three digits for people.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// secondsOf turns a predicted number of seconds into a duration. What no clock
// can hold becomes the longest SLO.
func secondsOf(seconds float64) time.Duration {
	if !(seconds >= 0 && seconds <= schemas.MaxSLO.Seconds()) {
		return schemas.MaxSLO
	}
	return time.Duration(seconds * float64(time.Second))
}
