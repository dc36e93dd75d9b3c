package runner

import (
	"fmt"
	"math"
	"strings"
	"time"

	"courier/schemas"
)

// progressLine is the state of the progress bar. It follows from epochs and advice alone.
type progressLine struct {
	epochs    uint32        // number of epochs of the job
	done      uint32        // last epoch
	batchSize uint32        // current batch size
	submitted time.Time     // has the monotonic clock
	slo       time.Duration // 0: none
	finish    time.Time     // predicted; zero: unknown

	within schemas.EpochProgress // measured
}

// predict takes advice that arrived at an instant. It predicts the remaining time of a running job,
// and the total time of a job that has not started. If the job does not run with the advised batch
// size, the prediction for its own batch size is used.
func (p *progressLine) predict(a *schemas.Advice, at time.Time) {
	p.finish = time.Time{}
	if a == nil || a.Chosen == nil {
		return
	}
	alternative := a.Chosen
	if alternative.BatchSize != p.batchSize {
		if running := a.Running(p.batchSize, alternative.CPUs); running != nil {
			alternative = running
		}
	}
	if alternative.PredictedSeconds != nil {
		p.finish = at.Add(durationOf(*alternative.PredictedSeconds))
	}
}

const barCells = 20

// text returns the progress bar at an instant:
//
//	[########............] 4/10 epochs, 12s, finish predicted in 18s, at 30s of 1m0s: SLO met
func (p *progressLine) text(now time.Time) string {
	ratio, finish := 0.0, p.finish
	if p.epochs > 0 {
		ratio = math.Min(1, (float64(p.done)+p.within.EpochRatio)/float64(p.epochs))
	}
	if w := &p.within; finish.IsZero() && w.RunningEpoch > 0 && p.epochs >= w.RunningEpoch {
		finish = now.Add(durationOf(w.LeftSeconds() + w.EpochSeconds*float64(p.epochs-w.RunningEpoch)))
	}
	full := int(ratio * barCells)
	elapsed := now.Sub(p.submitted)
	var b strings.Builder
	fmt.Fprintf(&b, "[%s%s] %d/%d epochs, %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full),
		p.done, p.epochs, schemas.FormatRunning(elapsed.Seconds()))

	switch {
	case finish.IsZero() && p.slo > 0:
		fmt.Fprintf(&b, " of %s, finish not predicted yet", schemas.FormatRunning(p.slo.Seconds()))
	case finish.IsZero():
		b.WriteString(", finish not predicted yet")
	default:
		remaining := max(0, finish.Sub(now))
		total := elapsed + remaining
		fmt.Fprintf(&b, ", finish predicted in %s, at %s",
			schemas.FormatRunning(remaining.Seconds()), schemas.FormatRunning(total.Seconds()))
		verdict := "met"
		if total > p.slo {
			verdict = "missed"
		}
		if p.slo > 0 {
			fmt.Fprintf(&b, " of %s: SLO %s", schemas.FormatRunning(p.slo.Seconds()), verdict)
		}
	}
	return b.String()
}

// durationOf converts predicted seconds to a duration. A number that is not a valid duration
// becomes the longest SLO.
func durationOf(seconds float64) time.Duration {
	if !(seconds >= 0 && seconds <= schemas.MaxSLO.Seconds()) {
		return schemas.MaxSLO
	}
	return time.Duration(seconds * float64(time.Second))
}
