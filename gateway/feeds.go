package gateway

import (
	"slices"

	"courier/schemas"
)

// feed is a stream that the gateway follows for its live clients.
type feed struct {
	stream string
	name   string        // name of the stream in event IDs
	kinds  []string      // kinds of its events, as returned by kindOf
	stored storedRecords // older records that the gateway reads at its start

	batched bool // a message may contain several events
}

// storedRecords selects the older records of a feed that the gateway reads at its start.
type storedRecords int

const (
	storedNone           storedRecords = iota
	storedLastPerSubject               // the last record of each subject
	storedAll
)

// feeds lists the feeds, in the order of the positions in a cursor.
var feeds = []feed{
	{
		stream:  schemas.StreamNode,
		name:    "node",
		kinds:   []string{kindSample},
		stored:  storedLastPerSubject,
		batched: true,
	},
	{stream: schemas.StreamJob, name: "job", kinds: []string{kindJob}},
	{stream: schemas.StreamAdvice, name: "advice", kinds: []string{kindAdvice}},
	{
		stream: schemas.StreamRegressor,
		name:   "regressor",
		kinds:  []string{kindRegressor},
		stored: storedAll,
	},
}

// Kinds of live events.
const (
	kindSample    = "sample"
	kindJob       = "job"
	kindAdvice    = "advice"
	kindRegressor = "regressor"
)

// kinds returns every kind of live event.
func kinds() []string {
	var all []string
	for _, f := range feeds {
		all = append(all, f.kinds...)
	}
	slices.Sort(all)
	return all
}

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
