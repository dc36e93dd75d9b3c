package schemas

import (
	"cmp"
	"time"
)

// Stream is a durable part of the event log with its limits. The retention limits are minimums; a
// server may be configured to keep more.
type Stream struct {
	Name       string        // upper case
	Subjects   []string      // filters; none matches a request
	MaxAge     time.Duration // minimum age at which messages are dropped
	MaxBytes   int64         // minimum size beyond which the oldest messages are dropped
	Replicas   int           // minimum number of replicas, 1 to 5
	Duplicates time.Duration // window in which NATS drops duplicates of a message ID
	MaxMessage int32         // maximum size of a message in bytes
}

const (
	day = 24 * time.Hour
	gib = int64(1) << 30
)

// Streams returns every stream of the event log. The limits suit an embedded server; a full stream
// drops its oldest messages.
func Streams() []Stream {
	all := []Stream{
		{Name: StreamJob, Subjects: jobFilters(), MaxAge: 400 * day, MaxBytes: 4 * gib},
		{
			Name:       StreamNode,
			Subjects:   []string{NodeSubject("*", EventSample)},
			MaxAge:     7 * day,
			MaxBytes:   gib,
			Duplicates: 2 * time.Minute,
		},
		{Name: StreamRegressor, Subjects: regressorFilters(), MaxAge: 400 * day, MaxBytes: gib / 4},
		// Predictions for running jobs are most of the bytes of all job events. No service needs
		// them once they are in the tables.
		{
			Name:     StreamAdvice,
			Subjects: []string{JobSubject("*", EventAdvice)},
			MaxAge:   7 * day,
			MaxBytes: gib,
		},
		{
			Name:       StreamDead,
			Subjects:   []string{DeadSubject("*"), DeadReplayedSubject("*")},
			MaxAge:     30 * day,
			MaxBytes:   gib / 4,
			MaxMessage: 2 * MaxMessageBytes,
		},
	}
	for i := range all {
		s := &all[i]
		s.Replicas = 1
		s.Duplicates = cmp.Or(s.Duplicates, 10*time.Minute)
		s.MaxMessage = cmp.Or(s.MaxMessage, MaxMessageBytes)
	}
	return all
}

// jobFilters lists each job event that is part of the cluster state. A filter job.*.* would also
// store job.<id>.alive and job.<id>.advice.
func jobFilters() []string {
	events := []string{
		EventSubmitted, EventAdmitted, EventStarted, EventEpoch,
		EventFinished, EventFailed, EventCancelled, EventLost, EventFound, EventRisk, EventMoved,
	}
	filters := make([]string, len(events))
	for i, e := range events {
		filters[i] = JobSubject("*", e)
	}
	return filters
}

// regressorFilters lists each stored event of a regressor. A filter regressor.*.* would also store
// regressor.<target>.fitting.
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

	// BucketAdmission is a key-value bucket: AdmissionPool to the last Ticket, updated by
	// compare-and-set.
	BucketAdmission = "ADMISSION"
	// BucketChampions is a key-value bucket: target to Champion, updated by compare-and-set.
	BucketChampions = "CHAMPIONS"
	// BucketLeases is a key-value bucket: name of a lease to Lease.
	BucketLeases = "LEASES"
	// BucketIntents is a key-value bucket: stream to the store's Intent.
	BucketIntents = "INTENTS"
	// BucketRegressors is an object store: artifacts, named by their sha256.
	BucketRegressors = "REGRESSORS"
	// BucketSnapshots is an object store: snapshots of services, kept for SnapshotAge.
	BucketSnapshots = "SNAPSHOTS"
)

// SnapshotAge is the age at which a snapshot is deleted. Services write snapshots far more often;
// the age removes the snapshots of versions that no longer run.
const SnapshotAge = 7 * day

// MaxMessageBytes is the maximum size of a request or event.
const MaxMessageBytes = 256 << 10

// Durable is a durable consumer.
type Durable struct {
	Name          string
	Stream        string
	MaxAckPending int           // at least three maximum batches
	AckWait       time.Duration // at least three insert timeouts
}

// StoreDurables returns the consumers of the store.
func StoreDurables() []Durable {
	var all []Durable
	for _, stream := range []string{StreamJob, StreamNode, StreamRegressor, StreamAdvice} {
		all = append(all, Durable{
			Name:          "store-" + stream,
			Stream:        stream,
			MaxAckPending: 3 * MaxBatchMessages,
			AckWait:       90 * time.Second,
		})
	}
	return all
}

// MaxBatchMessages is the maximum number of messages in a batch of the store. Batches reach it only
// while the store catches up. With batches of 10,000 each row costs ClickHouse twice as much.
const MaxBatchMessages = 50_000

// RedeliveryDelays returns the increasing delays before redeliveries of a message.
func RedeliveryDelays() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute}
}

// Lease is the value of a key in the bucket LEASES. It gives one process the exclusive right to a
// task. The holder renews it before it expires. Another process may take it after it has seen the
// same revision for the duration of the lease, by its own clock.
type Lease struct {
	Holder     string  `json:"holder"`      // random name of the process; "" if it was released
	TTLSeconds float64 `json:"ttl_seconds"` // validity of one write
}

// LeaseTrainer is the name of the lease with the right to fit and promote.
const LeaseTrainer = "trainer"

// LeaseTTL is the validity of one write of a lease. A killed trainer is replaced after LeaseTTL.
const LeaseTTL = 5 * time.Second

// StoreLeaseTTL is the validity of the lease of the writer of a stream's tables. The lease has the
// name of the writer's durable. After a store is killed, rows are late by StoreLeaseTTL. It is not
// shorter, because a store loses the lease and repeats its batch if its disk stalls for two thirds
// of it.
const StoreLeaseTTL = 5 * time.Second
