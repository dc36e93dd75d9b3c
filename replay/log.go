package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Log is a recorded log: the events of jobs, nodes and regressors and the advice in the order in
// which they were stored, and the files of the regressors.
type Log struct {
	Records   []LogRecord
	Artifacts map[string][]byte // by SHA-256 in hex
}

// LogRecord is an event with its position in a stream.
type LogRecord struct {
	bus.Record
	Stream string
}

// madeFrom returns the sequence in JOB up to which the advisor had read when it made the decision
// of a record, and the time of the decision. A cause of 0 means that nothing was stored before. ok is
// false for records without a decision, and for the advice of an admission, which the admission
// holds as well.
func (r *LogRecord) madeFrom() (cause uint64, at time.Time, ok bool) {
	switch e := r.Event.(type) {
	case *schemas.Submitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.JobAdmitted:
		return e.Advice.CauseSequence, e.Advice.At, true
	case *schemas.Advice:
		return e.CauseSequence, e.At, e.Action != schemas.ActionStart
	case *schemas.Risk:
		return e.CauseSequence, e.At, true
	}
	return 0, time.Time{}, false
}

func (r *LogRecord) ofJobs() bool { return r.Stream == schemas.StreamJob }

var streamNames = []string{
	schemas.StreamJob, schemas.StreamNode, schemas.StreamRegressor, schemas.StreamAdvice,
}

// ReadBus reads all streams up to their current end. A missing artifact is left out: predictions
// of that regressor are reported as unrepeatable.
func ReadBus(ctx context.Context, b *bus.Bus) (*Log, error) {
	_, _, err := b.Champion(ctx, schemas.TargetEpochTime)
	if err != nil && !errors.Is(err, schemas.ErrNotFound) {
		return nil, fmt.Errorf("the server has no event log of courier: %w", err)
	}
	l := &Log{Artifacts: map[string][]byte{}}
	streams := make([][]LogRecord, len(streamNames))
	for i, stream := range streamNames {
		err := b.Read(ctx, bus.FollowOptions{Stream: stream}, func(r bus.Record) error {
			streams[i] = append(streams[i], LogRecord{r, stream})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	l.Records = mergeStreams(streams)

	for _, p := range l.Promotions() {
		for _, digest := range []string{p.ModelDigest, p.ManifestDigest} {
			data, err := b.Artifact(ctx, digest)
			if errors.Is(err, schemas.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			l.Artifacts[digest] = data
		}
	}
	return l, nil
}

// mergeStreams orders the records of all streams by the time at which they were stored. It keeps
// the order of each stream, and puts no advice before its cause in JOB, even if the clocks of two
// servers disagree.
func mergeStreams(streams [][]LogRecord) []LogRecord {
	var all []LogRecord
	lastOfJobs := uint64(0) // sequence in JOB of the last merged event of that stream
	for {
		first, firstEarly := -1, -1 // streams; firstEarly has advice whose cause is not merged yet
		for i, s := range streams {
			if len(s) == 0 {
				continue
			}
			cause, _, _ := s[0].madeFrom()
			next := &first
			if s[0].Stream == schemas.StreamAdvice && cause > lastOfJobs {
				next = &firstEarly
			}
			if *next < 0 || s[0].StoredAt.Before(streams[*next][0].StoredAt) {
				*next = i
			}
		}
		if first < 0 {
			first = firstEarly // The cause is not in the log.
		}
		if first < 0 {
			return all
		}

		r := streams[first][0]
		if r.Stream == schemas.StreamJob {
			lastOfJobs = r.Sequence
		}
		all, streams[first] = append(all, r), streams[first][1:]
	}
}

// Promotions returns the promotions of the log, the oldest first.
func (l *Log) Promotions() []*schemas.Promoted {
	var all []*schemas.Promoted
	for i := range l.Records {
		if p, ok := l.Records[i].Event.(*schemas.Promoted); ok {
			all = append(all, p)
		}
	}
	return all
}

// firstOfJobs returns the sequence of the first event in JOB; 0 without any.
func (l *Log) firstOfJobs() uint64 {
	for i := range l.Records {
		if l.Records[i].ofJobs() {
			return l.Records[i].Sequence
		}
	}
	return 0
}
