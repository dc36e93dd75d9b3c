package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"courier/bus"
	"courier/importer"
	"courier/schemas"
)

// trainTimeout bounds how long an import waits for fits.
const trainTimeout = 5 * time.Minute

// publish publishes the runs that the log does not hold yet.
func (c *importCommand) publish(w *world, runs []*importer.Run, s *importSummary) error {
	b, err := c.connect(w)
	if err != nil {
		if !c.DryRun {
			return err
		}
		fmt.Fprintln(w.stderr, "cannot compare with the log:", err)
		s.plan(runs, imported{})
		return nil
	}
	defer closeBus(b)
	there, err := readImported(w.ctx, b)
	if err != nil {
		return err
	}
	if c.DryRun {
		s.plan(runs, there)
		return nil
	}
	_, _, err = b.Champion(w.ctx, schemas.TargetEpochTime)
	first := errors.Is(err, schemas.ErrNotFound)
	if err != nil && !first {
		return err
	}
	if err := s.publish(w, b, runs, there); err != nil {
		return err
	}
	if c.Train && s.Imported > 0 {
		return s.train(w.ctx, b, first)
	}
	return nil
}

// imported is the state of each job in the log.
type imported map[string]*knownJob

// knownJob holds the last events of a job. The events of a run are published in order, so all
// earlier ones are in the log.
type knownJob struct {
	run, ended uint32 // last run that started, and last run that ended
	epoch      uint32 // last epoch of run
}

// readImported reads the last event of each kind of each job. It finds earlier imports, because the
// deduplication window of NATS is short.
func readImported(ctx context.Context, b *bus.Bus) (imported, error) {
	// Read would wait for an absent stream.
	if _, err := b.LastSequence(ctx, schemas.StreamJob); err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	var subjects []string
	for _, kind := range []string{
		schemas.EventStarted,
		schemas.EventEpoch,
		schemas.EventFinished,
		schemas.EventFailed,
		schemas.EventCancelled,
	} {
		subjects = append(subjects, schemas.JobSubject("*", kind))
	}
	there := imported{}
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: subjects, LastPerSubject: true}
	return there, b.Read(ctx, o, func(r bus.Record) error { there.add(r.Event); return nil })
}

func (i imported) add(e schemas.Event) {
	job := func(id string) *knownJob {
		if i[id] == nil {
			i[id] = &knownJob{}
		}
		return i[id]
	}
	switch e := e.(type) {
	case *schemas.Started:
		k := job(e.JobID)
		if e.Run > k.run {
			k.run, k.epoch = e.Run, 0
		}
	case *schemas.Epoch:
		k := job(e.JobID)
		if e.Run > k.run || e.Run == k.run && e.Epoch > k.epoch {
			k.run, k.epoch = e.Run, e.Epoch
		}
	case *schemas.Ended:
		k := job(e.JobID)
		k.ended = max(k.ended, e.Run)
	}
}

// has reports whether the log has the whole run.
func (i imported) has(
	r *importer.Run,
) bool {
	return i[r.JobID] != nil && i[r.JobID].ended >= r.Number
}

// missing returns the events of a run that the log does not have.
func (i imported) missing(r *importer.Run) []schemas.Event {
	var all []schemas.Event
	for _, e := range r.Events() {
		switch e := e.(type) {
		case *schemas.Started:
			if k := i[e.JobID]; k != nil && k.run >= e.Run {
				continue
			}
		case *schemas.Epoch:
			if k := i[e.JobID]; k != nil && (k.run > e.Run || k.run == e.Run &&
				k.epoch >= e.Epoch) {
				continue
			}
		case *schemas.Ended:
			if k := i[e.JobID]; k != nil && k.ended >= e.Run {
				continue
			}
		}
		all = append(all, e)
	}
	return all
}

// plan counts the events that would be published.
func (s *importSummary) plan(runs []*importer.Run, there imported) {
	for _, r := range runs {
		if there.has(r) {
			s.There++
			continue
		}
		s.Imported++
		s.Events += len(there.missing(r))
	}
}

// drawEvery is the minimum time between two updates of the progress bar.
const drawEvery = 50 * time.Millisecond

// publish publishes the runs, oldest first, each in order.
func (s *importSummary) publish(w *world, b *bus.Bus, runs []*importer.Run, there imported) error {
	bar := newBar(w.stderr, max(1, len(runs)))
	drawn := time.Time{}
	for i, r := range runs {
		if bar.terminal && (time.Since(drawn) > drawEvery || i == len(runs)-1) {
			bar.draw(i+1, "runs")
			drawn = time.Now()
		}
		if there.has(r) {
			s.There++
			continue
		}
		for _, e := range there.missing(r) {
			if _, err := b.Publish(w.ctx, e); err != nil {
				return err
			}
			s.Events++
		}
		s.Imported++
	}
	if len(runs) > 0 {
		bar.end()
	}
	return nil
}

// train fits the regressors and records the outcome. Without a trainer the runs stay in the log for
// a later one. If there was no champion before, the fitted regressors are used at once.
func (s *importSummary) train(ctx context.Context, b *bus.Bus, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, trainTimeout)
	defer cancel()
	var reply schemas.TrainReply
	err := b.Request(ctx, schemas.SubjectRegressorTrain, &schemas.TrainRequest{
		Promote: first,
	}, &reply)
	if errors.Is(err, schemas.ErrUnavailable) {
		s.Trained = []string{"no trainer is running: the runs are used when one starts"}
		return nil
	}
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	var lines strings.Builder
	if err := printTrained(&lines, &reply); err != nil {
		return err
	}
	s.Trained = strings.Split(strings.TrimSpace(lines.String()), "\n")
	return nil
}
