package gateway

import "courier/schemas"

// feed is a stream that the gateway follows for its live clients.
type feed struct {
	stream string
	kind   string // of its events, as returned by kindOf

	fromStart      bool // the gateway reads the older records at its start
	lastPerSubject bool // of these only the last of each subject
}

var feeds = []feed{
	{stream: schemas.StreamNode, kind: kindSample, fromStart: true, lastPerSubject: true},
	{stream: schemas.StreamJob, kind: kindJob},
	{stream: schemas.StreamAdvice, kind: kindAdvice},
	{stream: schemas.StreamRegressor, kind: kindRegressor, fromStart: true},
}

// Kinds of live events.
const (
	kindSample    = "sample"
	kindJob       = "job"
	kindAdvice    = "advice"
	kindRegressor = "regressor"
	kindTime      = "time" // of a change without an event
)

// kindOf returns the kind of an event, or "" for an event that clients do not receive.
func kindOf(e schemas.Event) string {
	switch e.(type) {
	case *schemas.Sample:
		return kindSample
	case *schemas.Advice:
		return kindAdvice
	case *schemas.Trained, *schemas.Promoted, *schemas.Rejected, *schemas.Drift:
		return kindRegressor
	case *schemas.Submitted, *schemas.JobAdmitted, *schemas.Started, *schemas.Epoch,
		*schemas.Ended, *schemas.Moved, *schemas.Risk:
		return kindJob
	}
	return ""
}
