package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/regress/treefile"
	"courier/schemas"
	"courier/trainer"
)

// maxWait is the timeout of conditions in tests. It only guards against hanging.
const maxWait = 5 * time.Minute

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// runTrainer runs a trainer until the test ends.
func runTrainer(t testing.TB, b *bus.Bus, history func() trainer.History, o trainer.Options) {
	t.Helper()
	t.Cleanup(beginTrainer(t, b, history, o))
}

// startTrainer runs a trainer until it is stopped.
func startTrainer(t testing.TB, b *bus.Bus, o trainer.Options) (stop func()) {
	t.Helper()
	return beginTrainer(t, b, nil, o)
}

func beginTrainer(t testing.TB, b *bus.Bus, history func() trainer.History, o trainer.Options) (stop func()) {
	tr := trainer.New(b, history, o, slog.New(slog.DiscardHandler), nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- tr.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("trainer ended with %v", err)
		}
	}
}

// train requests regressors; it retries until a trainer replies.
func train(t testing.TB, b *bus.Bus) schemas.TrainReply {
	t.Helper()
	ctx := within(t)
	for {
		var reply schemas.TrainReply
		err := b.Request(ctx, schemas.SubjectRegressorTrain, &schemas.TrainRequest{}, &reply)
		if err == nil {
			return reply
		}
		if !errors.Is(err, schemas.ErrUnavailable) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// publishStudy publishes one run of four epochs for each of six configurations, without co-located
// jobs. All times are multiplied by factor.
func publishStudy(t testing.TB, b *bus.Bus, name string, begin, factor float64) {
	t.Helper()
	publish := func(e schemas.Event) {
		if _, err := b.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	s := begin
	for _, batch := range []uint32{4, 16, 64} {
		for _, cpus := range []uint32{1, 2} {
			job := fmt.Sprintf("%s-%d-%d", name, batch, cpus)
			set := setting(batch, cpus)
			publish(started(job, 1, s-0.5, set))
			seconds := factor * (1 + 8/float64(batch)) / float64(cpus) * (1 + 1e-7*(begin+float64(
				batch,
			))) // differs from the other runs
			first := s
			for n := range uint32(4) {
				s += seconds
				publish(epochEvent(job, 1, n+1, s, seconds*(1+0.01*float64(n%3)), set))
			}
			publish(ended(job, 1, schemas.EventFinished, s, s-first, set))
			s++
		}
	}
}

func predictEpoch(t testing.TB, b *bus.Bus, batch, cpus float64) float64 {
	t.Helper()
	c, _, err := b.Champion(within(t), schemas.TargetEpochTime)
	if err != nil {
		t.Fatal(err)
	}
	model, err := b.Artifact(within(t), c.ModelDigest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := b.Artifact(within(t), c.ManifestDigest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := treefile.Load(model, manifest)
	if err != nil {
		t.Fatal(err)
	}
	// model, node type, CPUs, concurrent jobs, processes per core, epochs, batch size
	load := file.Manifest().Features[4].Max
	got, err := file.Predict([]float64{0, 0, cpus, 1, load, 1, batch})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTrainer_WaitsForEnoughExamples(t *testing.T) {
	b := bustest.New(t)
	runTrainer(t, b, nil, trainer.Options{})
	r := train(t, b)
	if len(r.Promoted) != 0 || len(r.Waiting) != len(schemas.Targets()) ||
		!strings.Contains(r.Waiting[0], "too few examples") {
		t.Errorf("reply %+v, want every target waiting", r)
	}
	if _, _, err := b.Champion(within(t), schemas.TargetEpochTime); !errors.Is(err,
		schemas.ErrNotFound) {
		t.Errorf("champion without a fit: %v", err)
	}
}

func TestTrainer_LearnsFromTheLog(t *testing.T) {
	b := bustest.New(t)
	publishStudy(t, b, "a", 0, 1)
	runTrainer(t, b, nil, onRequest)
	r := train(t, b)
	if len(r.Promoted) != 3 || r.Promoted[0].Examples != 24 || r.Promoted[0].Configurations != 6 {
		t.Fatalf("reply %+v, want three regressors, of 24 examples of 6 configurations", r)
	}
	if got := predictEpoch(t, b, 16, 2); got < 0.74 || got > 0.78 {
		t.Errorf("epoch with batch size 16 on 2 CPUs: %.3f s, want 0.75 s", got)
	}
}

// A long run is learned from before it ends.
func TestTrainer_FitsAfterEnoughNewEpochs(t *testing.T) {
	b := bustest.New(t)
	publishStudy(t, b, "a", 0, 1)
	runTrainer(t, b, nil, trainer.Options{NewEpochs: 5, CoolDown: time.Millisecond})
	train(t, b)
	set := setting(16, 1)
	events := []schemas.Event{started("long", 1, 1000, set)}
	for n := range uint32(5) {
		events = append(events, epochEvent("long", 1, n+1, 1000+1.5*float64(n+1), 1.5, set))
	}
	for _, e := range events {
		if _, err := b.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	awaitTrained(t, b, "enough new epochs")
}

// awaitPromotion returns the regressor that was promoted for the reason.
func awaitPromotion(t testing.TB, b *bus.Bus, reason string) *schemas.Promoted {
	t.Helper()
	return await(t, b, func(e *schemas.Promoted) string { return e.Reason }, reason)
}

// awaitTrained returns the regressor that was fitted for the reason.
func awaitTrained(t testing.TB, b *bus.Bus, reason string) *schemas.Trained {
	t.Helper()
	return await(t, b, func(e *schemas.Trained) string { return e.Reason }, reason)
}

// await returns the first event of a kind whose text contains want.
func await[E schemas.Event](t testing.TB, b *bus.Bus, text func(E) string, want string) (found E) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	seen, done := "", false
	err := b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamRegressor}, func(r bus.Record) error {
		if e, ok := r.Event.(E); ok && !done {
			if seen += text(e) + "; "; strings.Contains(text(e), want) {
				found, done = e, true
				cancel()
			}
		}
		return nil
	})
	if err != nil || !done {
		t.Fatalf("event %T with text %q, error %v; want %q", found, seen, err, want)
	}
	return found
}

// laggingHistory is a database that has a part of the log.
type laggingHistory struct {
	events []schemas.Event
	err    error
}

func (p laggingHistory) Events(_ context.Context, _ time.Time, yield func(schemas.Event) error) error {
	for _, e := range p.events {
		if err := yield(e); err != nil {
			return err
		}
	}
	return p.err
}

// A database that lags, is empty or fails does not change the regressor.
func TestTrainer_ReadsMissingEventsFromTheLog(t *testing.T) {
	digests := map[string]string{}
	for _, c := range []struct {
		name  string
		share float64
		err   error
	}{{"none", 0, nil}, {"half", 0.5, nil}, {"all", 1, nil}, {
		"fails midway", 0.5, errors.New("the database is unavailable"),
	}} {
		b := bustest.New(t)
		publishStudy(t, b, "a", 0, 1)
		events := logged(t, b)
		h := laggingHistory{events[:int(c.share*float64(len(events)))], c.err}
		runTrainer(t, b, func() trainer.History { return h }, onRequest)
		if r := train(t, b); len(r.Promoted) == 3 {
			digests[c.name] = r.Promoted[0].ModelDigest
		}
	}
	for name, digest := range digests {
		if digest != digests["none"] {
			t.Errorf("digest with a database that %s = %.8s, want %.8s as from the log alone",
				name, digest, digests["none"])
		}
	}
	if len(digests) != 4 {
		t.Errorf("digests %v, want 4", digests)
	}
}

// If a trainer stops after it has set the key and before it publishes the event, the next trainer
// publishes it.
func TestTrainer_PublishesAMissingPromotion(t *testing.T) {
	b := bustest.New(t)
	publishStudy(t, b, "a", 0, 1)
	const target = schemas.TargetEpochTime
	files, err := trainer.Fit(within(t), target, collect(t, b).Examples(target), nil, trainer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := schemas.Champion{Target: schemas.TargetEpochTime}
	if c.ModelDigest, err = b.PutArtifact(within(t), files.Model); err != nil {
		t.Fatal(err)
	}
	if c.ManifestDigest, err = b.PutArtifact(within(t), files.Manifest); err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetChampion(within(t), c, 0); err != nil {
		t.Fatal(err)
	}
	runTrainer(t, b, nil, onRequest)
	awaitPromotion(t, b, "event repeated")
}

// collect returns the past of the log.
func collect(t testing.TB, b *bus.Bus) *trainer.Past {
	t.Helper()
	p := trainer.NewPast()
	for _, e := range logged(t, b) {
		p.Add(e, e.Stamped().Sequence)
	}
	return p
}

// logged returns the events of jobs that are in the log.
func logged(t testing.TB, b *bus.Bus) (events []schemas.Event) {
	t.Helper()
	err := b.Read(within(t), bus.FollowOptions{Stream: schemas.StreamJob}, func(r bus.Record) error {
		events = append(events, r.Event)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// A second fit reads new events only, and gives the same regressor as a trainer that reads all
// events.
func TestTrainer_ReadsTheDatabaseOnce(t *testing.T) {
	b := bustest.New(t)
	publishStudy(t, b, "a", 0, 1)
	h := &countingHistory{laggingHistory: laggingHistory{events: logged(t, b)}}
	stop := beginTrainer(t, b, func() trainer.History {
		return h
	}, onRequest)
	train(t, b)
	publishStudy(t, b, "b", 3600, 1)
	again := train(t, b)
	stop()
	if n := h.asked.Load(); n != 1 {
		t.Errorf("the database was read %d times for two fits, want once", n)
	}
	runTrainer(t, b, nil, onRequest)
	fromStart := train(t, b)
	if len(again.Promoted) != 3 || len(fromStart.Promoted) != 3 {
		t.Fatalf("promoted %+v, then %+v; want three each", again.Promoted, fromStart.Promoted)
	}
	for i, p := range again.Promoted {
		if n := fromStart.Promoted[i]; p.ModelDigest != n.ModelDigest ||
			p.ManifestDigest != n.ManifestDigest || p.Examples != n.Examples || i == 0 && p.Examples != 48 {
			t.Errorf("%s: %d examples, digests %.8s %.8s; want %.8s %.8s as from a full replay", p.Target,
				p.Examples, p.ModelDigest, p.ManifestDigest, n.ModelDigest, n.ManifestDigest)
		}
	}
}

// countingHistory is a database that counts its reads.
type countingHistory struct {
	laggingHistory
	asked atomic.Int64
}

func (c *countingHistory) Events(ctx context.Context, since time.Time, yield func(schemas.Event) error) error {
	c.asked.Add(1)
	return c.laggingHistory.Events(ctx, since, yield)
}

// Events older than the window are ignored in the database and in the log: both give the same
// regressor, and the database query has the limit.
func TestTrainer_IgnoresEventsBeforeTheWindow(t *testing.T) {
	digests := map[string]bool{}
	for _, share := range []float64{0, 1} {
		b := bustest.New(t)
		publishStudy(t, b, "a", -86_400, 1.3) // one day earlier
		publishStudy(t, b, "b", 0, 1)
		events := logged(t, b)
		asked := &recordingHistory{events: events[:int(share*float64(len(events)))]}
		runTrainer(t, b, func() trainer.History {
			return asked
		}, trainer.Options{NewEpochs: 1 << 30, Window: 12 * time.Hour})
		r := train(t, b)
		if len(r.Promoted) != 3 || r.Promoted[0].Examples != 24 {
			t.Fatalf("reply %+v, want three regressors, of 24 examples", r)
		}
		digests[r.Promoted[0].ModelDigest] = true
		if ago := time.Since(time.Unix(asked.since.Load(), 0)); ago < 11*time.Hour ||
			ago > 13*time.Hour {
			t.Errorf("the database query begins %v ago, want about 12 h", ago)
		}
	}
	if len(digests) != 1 {
		t.Errorf("regressors %v, want one", digests)
	}
}

// recordingHistory is a database that records the limit of its queries.
type recordingHistory struct {
	events []schemas.Event
	since  atomic.Int64 // Unix seconds
}

func (w *recordingHistory) Events(_ context.Context, since time.Time, yield func(schemas.Event) error) error {
	w.since.Store(since.Unix())
	for _, e := range w.events {
		at := time.Time{}
		switch e := e.(type) {
		case *schemas.Started:
			at = e.At
		case *schemas.Epoch:
			at = e.At
		case *schemas.Ended:
			at = e.At
		}
		if at.Before(since) {
			continue
		}
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}
