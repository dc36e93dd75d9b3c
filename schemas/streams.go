package schemas

import "time"

// Stream is one durable part of the event log and its limits. Those that decide
// how much is kept are the least: a server may be set to keep more.
type Stream struct {
	Name       string        // upper case
	Subjects   []string      // filters; none covers a request
	MaxAge     time.Duration // older messages are dropped; the least
	MaxBytes   int64         // the oldest messages beyond are dropped; the least
	Replicas   int           // servers that hold a copy, 1 to 5; the least
	Duplicates time.Duration // window in which NATS drops a message ID's copy
	MaxMessage int32         // bytes of the largest message
}

const (
	day = 24 * time.Hour
	gib = int64(1) << 30
)

// Streams returns every stream of the event log. Limits are those of an
// embedded server; a full stream drops its oldest messages. A stream that loses
// a subject comes before the stream that takes it over, because NATS refuses
// streams whose subjects overlap: until 2026-11-22 JOB held the advice.
func Streams() []Stream {
	return []Stream{
		{Name: StreamJob, Subjects: jobFilters(), MaxAge: 400 * day, MaxBytes: 4 * gib, Replicas: 1, Duplicates: 10 * time.Minute, MaxMessage: MaxMessageBytes},
		{Name: StreamNode, Subjects: []string{NodeSubject("*", EventSample)}, MaxAge: 7 * day, MaxBytes: gib, Replicas: 1, Duplicates: 2 * time.Minute, MaxMessage: MaxMessageBytes},
		{Name: StreamRegressor, Subjects: regressorFilters(), MaxAge: 400 * day, MaxBytes: gib / 4, Replicas: 1, Duplicates: 10 * time.Minute, MaxMessage: MaxMessageBytes},
		adviceStream(),
		{Name: StreamDead, Subjects: []string{DeadSubject("*"), DeadReplayedSubject("*")}, MaxAge: 30 * day, MaxBytes: gib / 4, Replicas: 1, Duplicates: 10 * time.Minute, MaxMessage: 2 * MaxMessageBytes},
	}
}

// adviceStream is the stream of predictions for running jobs. They are most of the
// bytes of all events of jobs, and of no use to a service once the tables have them.
func adviceStream() Stream {
	return Stream{
		Name:       StreamAdvice,
		Subjects:   []string{JobSubject("*", EventAdvice)},
		MaxAge:     7 * day,
		MaxBytes:   gib,
		Replicas:   1,
		Duplicates: 10 * time.Minute,
		MaxMessage: MaxMessageBytes,
	}
}

// jobFilters names each event of a job that is part of the cluster state.
// job.<id>.alive matches job.*.* and must not be stored; job.<id>.advice has a
// stream of its own.
func jobFilters() []string {
	events := []string{
		EventSubmitted, EventAdmitted, EventStarted, EventEpoch,
		EventFinished, EventFailed, EventCancelled, EventLost, EventRisk, EventMoved,
	}
	filters := make([]string, len(events))
	for i, e := range events {
		filters[i] = JobSubject("*", e)
	}
	return filters
}

// regressorFilters names each stored event of a regressor, because
// regressor.<target>.fitting must not be stored.
func regressorFilters() []string {
	var filters []string
	for _, e := range []string{EventTrained, EventPromoted, EventRejected, EventDrift} {
		filters = append(filters, RegressorSubject("*", e))
	}
	return filters
}

// Names of the streams, buckets and queue groups.
const (
	StreamJob       = "JOB"
	StreamNode      = "NODE"
	StreamRegressor = "REGRESSOR"
	StreamAdvice    = "ADVICE"
	StreamDead      = "DEAD"

	BucketAdmission  = "ADMISSION"  // key-value: AdmissionPool to the last Ticket, changed by compare-and-set
	BucketChampions  = "CHAMPIONS"  // key-value: target to Champion, changed by compare-and-set
	BucketLeases     = "LEASES"     // key-value: what only one process may do to the Lease of who does it
	BucketIntents    = "INTENTS"    // key-value: stream to the store's Intent
	BucketRegressors = "REGRESSORS" // object store: artifacts named by their sha256
	BucketSnapshots  = "SNAPSHOTS"  // object store: states of services, each kept for SnapshotAge
)

// SnapshotAge is how long the snapshot of a state is kept. A service writes one far more
// often; the age removes those of versions that no longer run.
const SnapshotAge = 7 * day

// MaxMessageBytes is the largest request or event that is accepted.
const MaxMessageBytes = 256 << 10

// Durable is a consumer that outlives its process.
type Durable struct {
	Name          string
	Stream        string
	MaxAckPending int             // at least three of its largest batches
	AckWait       time.Duration   // at least three insert timeouts
	BackOff       []time.Duration // delays before the redeliveries
}

// StoreDurables returns the durables by which the store follows the log.
func StoreDurables() []Durable {
	var all []Durable
	for _, stream := range []string{StreamJob, StreamNode, StreamRegressor, StreamAdvice} {
		all = append(all, Durable{Name: "store-" + stream, Stream: stream, MaxAckPending: 3 * MaxBatchMessages, AckWait: 90 * time.Second, BackOff: RedeliveryDelays()})
	}
	return all
}

// MaxBatchMessages is the largest number of messages in one batch of the store. A
// batch is so large only where the store has to catch up: of ten thousand, each row costs
// ClickHouse twice as much.
const MaxBatchMessages = 50_000

// RedeliveryDelays returns the growing delays after which a message is delivered again.
func RedeliveryDelays() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute}
}
