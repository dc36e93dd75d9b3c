package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/trainer"
)

// runPublisher publishes sequential runs of one model, each of three epochs.
type runPublisher struct {
	bus  *bus.Bus
	s    float64
	runs int
}

// run publishes a run whose epochs take factor times as long as the law predicts.
func (o *runPublisher) run(t testing.TB, batch uint32, factor float64) {
	t.Helper()
	set := setting(batch, 1)
	job := fmt.Sprint("run-", o.runs)
	seconds := factor * (1 + 64/float64(batch)) * (1 + 0.01*float64(o.runs%3-1))
	first := o.s
	events := []schemas.Event{started(job, 1, o.s, set)}
	for n := range uint32(3) {
		o.s += seconds
		events = append(events, epochEvent(job, 1, n+1, o.s, seconds, set))
	}
	events = append(events, ended(job, 1, schemas.EventFinished, o.s, o.s-first, set))
	o.s++
	o.runs++
	for _, e := range events {
		if _, err := o.bus.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
}

// onRequest are options of a trainer that fits on request only.
var onRequest = trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Hour}

// afterRuns are options of a trainer that fits after each run.
var afterRuns = trainer.Options{NewEpochs: 1 << 30, CoolDown: time.Millisecond}

// largeBatches publishes a history, then two runs with a drift of large batches.
func largeBatches(t testing.TB, b *bus.Bus) *runPublisher {
	runs := &runPublisher{bus: b}
	for range 3 {
		for _, batch := range []uint32{16, 32, 64, 128, 256, 512} {
			runs.run(t, batch, 1)
		}
	}
	return runs
}

func (o *runPublisher) drift(t testing.TB) {
	for _, run := range []struct {
		batch  uint32
		factor float64
	}{{16, 1}, {256, 1.5}, {16, 1}, {512, 1.5}, {32, 1}} {
		o.run(t, run.batch, run.factor)
	}
}

// awaitState returns the first drift of a state.
func awaitState(t testing.TB, b *bus.Bus, state string) *schemas.Drift {
	t.Helper()
	return await(t, b, func(e *schemas.Drift) string { return e.State }, state)
}

// drifts returns the published drifts.
func drifts(t testing.TB, b *bus.Bus) (all []*schemas.Drift) {
	t.Helper()
	o := bus.FollowOptions{Stream: schemas.StreamRegressor}
	err := b.Read(within(t), o, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Drift); ok {
			all = append(all, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Only large batches become slower. After two runs the drift is published with its scope, and the
// served predictions are corrected. A later fit ends the correction and publishes that.
func TestTrainer_CorrectsDriftOfLargeBatches(t *testing.T) {
	b := bustest.New(t)
	runs := largeBatches(t, b)
	runTrainer(t, b, nil, afterRuns)
	train(t, b)
	before := map[float64]float64{}
	for _, batch := range []float64{16, 256, 512} {
		before[batch] = predictEpoch(t, b, batch, 1)
	}
	runs.drift(t)
	e := awaitState(t, b, schemas.DriftActive)
	if e.Scope != schemas.DriftModel || e.Model != "m" || e.BatchSizeFrom != 256 || e.BatchSizeTo != 0 {
		t.Errorf("scope %q, model %q, batch sizes from %d to %d; want m from 256",
			e.Scope, e.Model, e.BatchSizeFrom, e.BatchSizeTo)
	}
	if e.RatioLow == nil || e.RatioHigh == nil || *e.RatioLow > 1.5 || *e.RatioHigh < 1.5 ||
		math.Abs(e.Ratio/1.5-1) > 0.05 || e.Jobs != 2 || e.BeforeRatio != 1 {
		t.Errorf("drift %+v, want ratio 1.5 in its interval, from two jobs", e)
	}
	if e.Statistic < 6 {
		t.Errorf("drift lacks evidence: %+v", e)
	}
	awaitTrained(t, b, "drift: jobs of model m with batch size 256 or more take 1.")
	awaitServed(t, b, func() bool { return predictEpoch(t, b, 512, 1) > 1.4*before[512] })
	for batch, factor := range map[float64]float64{16: 1, 256: 1.5, 512: 1.5} {
		if got := predictEpoch(t, b, batch, 1) / before[batch]; math.Abs(got/factor-1) > 0.06 {
			t.Errorf("batch size %g: prediction changed by the factor %.2f, want %.2f", batch, got, factor)
		}
	}
	if got := corrections(t, b); len(got) != 1 || got[0].BatchSizeFrom != 256 || got[0].State != schemas.DriftActive {
		t.Errorf("listed corrections %+v, want that of batch sizes from 256", got)
	}
	for range 6 {
		runs.run(t, 256, 1.5)
		runs.run(t, 512, 1.5)
	}
	train(t, b)
	over := awaitState(t, b, schemas.DriftReplaced)
	if over.BatchSizeFrom != 256 || over.Jobs < 12 || over.Ratio != 1 || math.Abs(over.BeforeRatio/1.5-1) > 0.03 {
		t.Errorf("end of drift %+v, want that of batch sizes from 256 after 14 jobs", over)
	}
	if got := predictEpoch(t, b, 512, 1) / before[512]; math.Abs(got/1.5-1) > 0.03 {
		t.Errorf("after a fit, batch size 512: prediction changed by the factor %.2f, want 1.5", got)
	}
	if got := corrections(t, b); len(got) != 0 {
		t.Errorf("listed corrections %+v, want none", got)
	}
	if all := drifts(t, b); len(all) != 2 {
		t.Errorf("%d drifts published, want a begin and an end", len(all))
	}
}

// corrections returns the listed corrections of the champion.
func corrections(t testing.TB, b *bus.Bus) (all []*schemas.Drift) {
	t.Helper()
	for _, v := range list(t, b, schemas.TargetEpochTime) {
		all = append(all, v.Corrections...)
	}
	return all
}

// awaitServed waits until the served regressor meets a condition.
func awaitServed(t testing.TB, b *bus.Bus, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	done := false
	err := b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamRegressor}, func(r bus.Record) error {
		if _, ok := r.Event.(*schemas.Promoted); ok && is() {
			done = true
			cancel()
		}
		return nil
	})
	if err != nil || !done {
		t.Fatalf("the served regressor does not meet the condition: %v", err)
	}
}

// awaitUp waits until a trainer answers.
func awaitUp(t testing.TB, b *bus.Bus) {
	t.Helper()
	ctx := within(t)
	for {
		var all schemas.RegressorList
		q := schemas.RegressorListRequest{Target: schemas.TargetEpochTime}
		err := b.Request(ctx, schemas.SubjectRegressorList, &q, &all)
		if err == nil {
			return
		}
		if !errors.Is(err, schemas.ErrUnavailable) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// A trainer that stops between a correction and its event publishes the event after its restart,
// once.
func TestTrainer_PublishesACorrectionOnce(t *testing.T) {
	b := bustest.New(t)
	runs := largeBatches(t, b)
	stop := startTrainer(t, b, afterRuns)
	train(t, b)
	stop()
	runs.drift(t)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	dead := false
	o := trainer.DieAfter(afterRuns, func(name string) error {
		if dead = dead || name == "published"; !dead {
			return nil
		}
		cancel()
		return context.Canceled
	})
	tr := trainer.New(b, nil, o, slog.New(slog.DiscardHandler), nil)
	if err := tr.Run(ctx); err != nil || !dead {
		t.Fatalf("the trainer ended with %v, stopped %v", err, dead)
	}
	if all := drifts(t, b); len(all) != 0 {
		t.Fatalf("%d drifts were published before the trainer stopped, want 0", len(all))
	}
	for range 2 {
		stop = startTrainer(t, b, afterRuns)
		if e := awaitState(t, b, schemas.DriftActive); e.BatchSizeFrom != 256 || e.Jobs != 2 {
			t.Errorf("drift %+v, want batch sizes from 256 after two jobs", e)
		}
		awaitUp(t, b)
		stop()
	}
	if all := drifts(t, b); len(all) != 1 {
		t.Errorf("%d drifts published, want 1", len(all))
	}
}

// A rollback to the previous champion ends a correction; the next run begins it again.
func TestTrainer_ARollbackEndsACorrection(t *testing.T) {
	b := bustest.New(t)
	runs := largeBatches(t, b)
	runTrainer(t, b, nil, afterRuns)
	first := train(t, b).Promoted[0]
	runs.drift(t)
	awaitState(t, b, schemas.DriftActive)
	q := schemas.PromoteRequest{Target: schemas.TargetEpochTime, ModelDigest: first.ModelDigest}
	var promoted schemas.Promoted
	if err := b.Request(within(t), schemas.SubjectRegressorPromote, &q, &promoted); err != nil {
		t.Fatal(err)
	}
	e := awaitState(t, b, schemas.DriftWithdrawn)
	if e.BatchSizeFrom != 256 || e.Ratio != 1 || e.ModelDigest != first.ModelDigest {
		t.Errorf("end of drift %+v, want that of batch sizes from 256", e)
	}
}
