package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"courier/runner"
	"courier/schemas"
)

// ErrInterrupted is returned by Run if its context ends.
var ErrInterrupted = errors.New("the tuning was interrupted")

// maxFirstFailures is the number of failed trials without any success at which the command is
// taken for broken.
const maxFirstFailures = 3

// Measure runs the command of a segment until it ends or its context ends. It calls report with each
// epoch, from any goroutine. An error means that no command could be started.
type Measure func(ctx context.Context, g Segment, values []string, report func(TrialEpoch)) (Ending, error)

// segmentMessage is sent by a running segment.
type segmentMessage struct {
	id     int
	epoch  *TrialEpoch
	ending *Ending
	err    error
}

// Run runs the trials that are left. report is called with each change and may be nil. If ctx ends,
// the error wraps ErrInterrupted, and the same tuning can be continued. With a NoResult or an
// IncompleteTuning, the ranking has what ran; with other errors it is nil.
func (t *Tuning) Run(ctx context.Context, measure Measure, report func(TuningProgress)) (*Ranking, error) {
	t.report = report
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := make(chan segmentMessage)
	count, reason := 0, ""
	var failure error
	for {
		for ctx.Err() == nil && t.stopped == "" && failure == nil {
			var g *Segment
			if g, reason, failure = t.prepare(); g == nil {
				break
			}
			if failure = t.add(&recordLine{Kind: kindStart, Segment: g}); failure != nil {
				break
			}
			t.message("%s", t.startText(g))
			count++
			go runSegment(running, *g, t.state.trial(g.Trial).values, measure, messages)
		}
		if failure != nil {
			cancel()
		}
		if count == 0 {
			break
		}
		ended, err := t.await(messages, cancel)
		count -= ended
		failure = errors.Join(failure, err)
	}
	return t.conclude(ctx, reason, failure)
}

// prepare plans, and returns the segment that starts next; nil if none can, with why nothing can
// start at all.
func (t *Tuning) prepare() (g *Segment, reason string, err error) {
	s := t.state
	if s.failed >= min(maxFirstFailures, len(s.trials)) && len(s.speed.segments) == 0 {
		return nil, "", fmt.Errorf("the first trials failed (%s): see %s/logs", s.firstError, t.dir)
	}
	if err := t.plan(); err != nil {
		return nil, "", err
	}
	g, reason = t.next()
	return g, reason, nil
}

// runSegment runs a segment and sends its messages.
func runSegment(ctx context.Context, g Segment, values []string, measure Measure, messages chan<- segmentMessage) {
	ending, err := measure(ctx, g, values, func(e TrialEpoch) {
		messages <- segmentMessage{id: g.ID, epoch: &e}
	})
	messages <- segmentMessage{id: g.ID, ending: &ending, err: err}
}

// maxTimerSeconds is the longest wait for a limit. Longer ones, about 32 years, have no timer: from
// 292 years on, a time.Duration overflows.
const maxTimerSeconds = 1e9

// await handles one message, or stops all segments at the limit. It returns the number of segments
// that have ended.
func (t *Tuning) await(messages <-chan segmentMessage, stop func()) (ended int, err error) {
	var limit <-chan time.Time
	if left := t.untilLimit(); left < maxTimerSeconds && t.stopped == "" {
		timer := time.NewTimer(time.Duration(max(0, left) * float64(time.Second)))
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-limit:
		t.stopped = t.limitReason()
		t.message("%s: stopping the running trials", t.stopped)
		stop()
		return 0, nil
	case m := <-messages:
		if m.epoch != nil {
			err := t.add(&recordLine{Kind: kindEpoch, ID: m.id, Epoch: m.epoch})
			t.notify("")
			return 0, err
		}
		a := t.state.active[m.id]
		g := a.Segment
		switch {
		case m.err != nil:
			m.ending.Outcome = OutcomeStopped // the trial itself did not fail
		case m.ending.Outcome == OutcomeStopped && a.isComplete():
			m.ending.Outcome = OutcomeDone
		}
		err := t.add(&recordLine{Kind: kindEnd, ID: m.id, Ending: m.ending})
		t.message("%s", t.endText(&g, m.ending))
		return 1, errors.Join(err, m.err)
	}
}

// NoResult reports that a tuning ended although no trial has a figure that ranks it.
type NoResult struct{ Reason string }

func (e *NoResult) Error() string { return "no trial has a result: " + e.Reason }

// IncompleteTuning reports that a tuning ended at its bound without a plan that keeps it, although
// some trial has a result.
type IncompleteTuning struct {
	Reason     string
	StagesDone int
	Stages     int
	Needs      string // bound that suffices; empty: unknown
}

func (e *IncompleteTuning) Error() string {
	return fmt.Sprintf("not complete, %d of %s done: %s; the same command with %s continues", e.StagesDone,
		schemas.FormatCount(uint64(e.Stages), "stage"), e.Reason, cmp.Or(e.Needs, "a larger bound"))
}

// conclude returns the result. It comes with a NoResult or an
// IncompleteTuning if the tuning ended with one.
func (t *Tuning) conclude(ctx context.Context, reason string, failure error) (*Ranking, error) {
	if runner.HasPlaceholder(t.o.Command, dirPlaceholder) {
		failure = errors.Join(failure, os.MkdirAll(t.bestDir(), 0o755)) // the printed command may use it
	}
	switch {
	case failure != nil:
		return nil, failure
	case ctx.Err() != nil:
		return nil, errors.Join(ErrInterrupted, ctx.Err())
	}
	if t.stopped != "" {
		reason = t.stopped
	}
	isComplete := reason == ""
	if isComplete {
		reason = "every stage is done"
		if len(t.state.alive()) == 0 {
			reason = "no trial is left"
		}
	}
	r := t.result(reason, isComplete)
	switch {
	case t.state.best() == nil:
		return r, &NoResult{reason}
	case !isComplete && !t.state.hasPlan:
		return r, &IncompleteTuning{reason, r.StagesDone, len(r.Stages), t.needs}
	}
	return r, nil
}
