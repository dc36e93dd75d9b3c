package trainer

import (
	"context"
	"time"

	"courier/bus"
	"courier/schemas"
)

// follower owns the past. Only the goroutine of follow uses it.
type follower struct {
	past            *Past
	position        uint64           // sequence up to which the log was read
	live            bool             // all events stored at the start have been read
	pendingReason   fitReason        // last reason for a fit while the log is replayed
	exampleRequests []exampleRequest // wait until the log is read far enough
	epochTime       *loadedChampion  // of the last event; nil if there was none
}

// updateBuffer is the number of events that are read ahead.
const updateBuffer = 256

// follow owns the past. It applies the events of jobs, requests fits, and replies to example requests.
func (t *Trainer) follow(ctx context.Context) error {
	fw := &follower{past: NewLimitedPast(t.o.Limits)}
	in, ended := make(chan logUpdate, updateBuffer), make(chan error, 1)
	go func() { ended <- t.readJobs(ctx, in) }()
	for {
		select {
		case p := <-in:
			t.handleUpdate(ctx, fw, &p)
		case v := <-t.exampleRequests:
			fw.exampleRequests = append(fw.exampleRequests, v)
		case err := <-ended:
			return err
		}
		fw.answer(t.o.horizon(time.Now()))
	}
}

// handleUpdate applies an update of the reader.
func (t *Trainer) handleUpdate(ctx context.Context, fw *follower, p *logUpdate) {
	if p.record.Event != nil {
		t.handleEvent(ctx, fw, p.record)
	}
	fw.position = max(fw.position, p.position)
	if p.live && !fw.live {
		fw.live = true
		runs, epochs := fw.past.Len()
		t.log.Info("log replayed", "sequence", fw.position, "runs", runs, "epochs", epochs)
		t.requestFit(fw.pendingReason) // events from before the start count as well
	}
}

// handleEvent applies the next event and requests a fit if the event is a reason for one.
func (t *Trainer) handleEvent(ctx context.Context, fw *follower, record bus.Record) {
	if c := (*t.champions.Load())[schemas.TargetEpochTime]; c != nil && c != fw.epochTime {
		fw.epochTime, fw.pendingReason = c, reasonNone
		t.newEpochs.Store(0)
	}
	if fw.past.add(record.Event, record.Sequence) == nil {
		return // a duplicate, or an event that no example depends on
	}
	reason := t.reasonToFit(fw, &record)
	t.metrics.newEpochs.Set(float64(t.newEpochs.Load()))
	switch {
	case reason == reasonNone:
	case !fw.live:
		fw.pendingReason = reason
	default:
		if isImported(&record) {
			t.imports.add(time.Now())
		}
		t.requestFit(reason)
	}
}

// requestFit requests a fit if there is a reason. The work goroutine carries it out after the cool-down,
// and not during an import.
func (t *Trainer) requestFit(reason fitReason) {
	if reason == reasonNone {
		return
	}
	select {
	case t.fitReasons <- reason:
	default: // the work goroutine has not taken the last one yet
	}
}

// reasonToFit counts an event of a run and returns the reason for a fit, if there is one.
func (t *Trainer) reasonToFit(fw *follower, record *bus.Record) fitReason {
	if c := fw.epochTime; c != nil && !record.StoredAt.After(c.manifest.Examples.Last) {
		return reasonNone // the champion has learned from it
	}
	switch e := record.Event.(type) {
	case *schemas.Epoch:
		t.newEpochs.Add(1)
	case *schemas.Ended:
		if e.EpochsDone == 0 {
			t.newEpochs.Add(1) // a run without recognized epochs is one example
		}
		return reasonRunEnded
	}
	if t.newEpochs.Load() >= int64(t.o.NewEpochs) {
		return reasonEnoughEpochs
	}
	return reasonNone
}

// answer replies to the requests for which the log was read far enough. Runs older than the horizon
// are dropped first.
func (fw *follower) answer(horizon time.Time) {
	if !fw.live || len(fw.exampleRequests) == 0 {
		return
	}
	fw.past.Expire(horizon)
	waiting := fw.exampleRequests[:0]
	for _, v := range fw.exampleRequests {
		if v.sequence > fw.position {
			waiting = append(waiting, v)
			continue
		}
		examples := fw.past.Examples(v.target)
		v.reply <- exampleSet{examples, fw.past.aside, fw.past.last, fw.past.Skipped()}
	}
	fw.exampleRequests = waiting
}
