package advisor

import (
	"context"
	"strconv"

	"courier/advisor/cluster"
	"courier/schemas"
)

// scoreReply answers job.score.
func (a *Advisor) scoreReply(context.Context, *schemas.ScoreRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.Score(), nil
}

// score counts the outcome of a submission in the metrics.
func (a *Advisor) score(j *cluster.Job) {
	o, ok := j.Outcome()
	if !ok || !o.AsAdvised {
		return
	}
	kept := strconv.FormatBool(o.Kept)
	if p := o.Promise.Probability; p != nil {
		a.metrics.calibration.WithLabelValues(strconv.FormatFloat(schemas.CalibrationFrom(*p), 'f',
			2, 64), kept).Inc()
	}
	if o.Promise.Decision == schemas.MeetsSLO {
		a.metrics.promises.WithLabelValues(strconv.FormatFloat(o.Request.Confidence, 'f',
			2, 64), kept).Inc()
	}
}
