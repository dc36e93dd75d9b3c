package trainer

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a trainer. Zero fields mean the defaults that stand beside them.
type Options struct {
	Version   string        // of the program, for manifests; "0.0.0"
	Method    Method        // of fits; MethodFamilies
	NewEpochs int           // fit after that many new epochs; 40
	Every     time.Duration // fit that often, if there are new epochs; 24 h
	CoolDown  time.Duration // least time between two fits that nobody asked for; 5 s
	Window    time.Duration // what happened longer ago teaches nothing; 10 years, below 0 without limit
	Limits    Limits        // of what is kept of the past
	Examples  int           // that a fit learns from at most, or one of each setting; 10,000
	Trees     int           // of each forest; 200
	Depth     int           // of each tree; 8
	Seed      uint64        // of all that is random in a fit
	Threads   int           // of a fit; one less than processors, so that others can work
	Progress  func(target string, done, planned int)

	step func(name string) error // tests let the trainer die after a step
}

// Method is how regressors are fitted.
type Method string

const (
	// MethodEvidence predicts each model by its own runs, with the distributions of package
	// evidence. Every run counts at once, and drift is corrected.
	MethodEvidence Method = "evidence"
	// MethodFamilies fits one regressor for all models by the best of several families. A
	// challenger is promoted once it has predicted new jobs better than the champion.
	MethodFamilies Method = "families"
)

// defaultWindow is 10 years: imported studies are that old. Memory is bounded by Limits, and what
// changed since is found by its drift, so that a shorter window is seldom needed.
const defaultWindow = 10 * 365 * 24 * time.Hour

func (o Options) withDefaults() Options {
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.Version, o.NewEpochs, o.CoolDown = cmp.Or(o.Version, "0.0.0"), cmp.Or(o.NewEpochs, 40), cmp.Or(
		o.CoolDown, 5*time.Second,
	)
	o.Every, o.Method = cmp.Or(o.Every, 24*time.Hour), cmp.Or(o.Method, MethodFamilies)
	o.Examples, o.Trees, o.Depth = cmp.Or(o.Examples, 10_000), cmp.Or(o.Trees, 200), cmp.Or(
		o.Depth, 8,
	)
	if o.step == nil {
		o.step = func(string) error { return nil }
	}
	return o
}

// horizon returns the instant before which nothing teaches; zero if there is none.
func (o *Options) horizon(now time.Time) time.Time {
	if o.Window < 0 {
		return time.Time{}
	}
	return now.Add(-o.Window)
}

// Trainer fits regressors, judges them, and puts them in use.
type Trainer struct {
	bus     *bus.Bus
	history func() History

	mayHaveHistory bool // the database may come later

	log       *slog.Logger
	metrics   *metrics
	o         Options
	wishes    chan wish
	orders    chan order
	standings atomic.Pointer[map[string]standing]
	changes   *changes
	fitTook   atomic.Int64         // nanoseconds of the last fit of all targets
	fresh     atomic.Int64         // epochs since the last fit
	due       atomic.Pointer[wish] // waits for the cool-down
	views     chan view            // questions to the owner of the past

	corrections chan struct{} // what is served is to be corrected
	deferred    atomic.Bool   // a correction waits for its turn
	corrected   time.Time     // end of the last correction, which only the worker knows
	correctTook time.Duration

	mu     sync.Mutex
	life   *Life
	loaded map[string]*loaded // by the digest of the manifest
	trials map[string]*Trial  // by target
	drifts []drifted          // oldest first
}

// wish is a reason to fit; reply is nil if nobody waits.
type wish struct {
	targets []string
	reason  string
	promote bool // at once
	asked   bool // by somebody
	reply   chan outcome
}

type outcome struct {
	reply schemas.TrainReply
	err   error
}

// order is something else that only one goroutine may do.
type order struct {
	do    func(context.Context) (any, error)
	reply chan answer // nil if nobody waits
}

type answer struct {
	reply any
	err   error
}

func (o order) carryOut(ctx context.Context) {
	reply, err := o.do(ctx)
	if o.reply != nil {
		o.reply <- answer{reply, err}
	}
}

// New returns a trainer that does not run yet. history returns the database's
// past, or nil while there is none: then all comes from the log.
func New(
	b *bus.Bus, history func() History, o Options, log *slog.Logger, reg prometheus.Registerer,
) *Trainer {
	o = o.withDefaults()
	t := &Trainer{
		bus: b, history: history, mayHaveHistory: history != nil, log: log, metrics: newMetrics(
			reg,
		), o: o,
		corrections: make(chan struct{}, 1),
	}
	if history == nil {
		t.history = func() History { return nil }
	}
	return t
}

// Run works until ctx ends; a fit in hand is given up then. Of several trainers
// one works, and the others wait for its lease.
//
//	NODE stream ──► followNodes: what changed by itself
//	REGRESSOR stream ──► followLife: champions, challengers ──┐ standings
//	JOB stream ──► follow: count, drift, trials ◄─────────────┘
//	                 │ wish         │ verdict
//	regressor.* ──► serve ──────────┤
//	                                ▼
//	        work: recall → fit → trained, promoted, rejected
func (t *Trainer) Run(ctx context.Context) error {
	return t.bus.Hold(ctx, schemas.LeaseTrainer, schemas.LeaseTTL, t.run)
}

// run works while the lease is held, and begins anew with the log each time.
func (t *Trainer) run(ctx context.Context) error {
	t.wishes, t.orders, t.changes = make(chan wish, 1), make(chan order, 8), newChanges()
	t.life, t.loaded, t.trials, t.drifts = NewLife(), map[string]*loaded{}, map[string]*Trial{}, nil
	t.standings.Store(&map[string]standing{})
	t.views = make(chan view)
	t.fresh.Store(0)
	t.due.Store(nil)
	t.corrected, t.correctTook = time.Time{}, 0
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := make(chan struct{}) // what became of the regressors
	behind := func(part func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-known:
				return part(ctx)
			case <-ctx.Done():
				return nil
			}
		}
	}
	parts := []func(context.Context) error{func(ctx context.Context) error {
		return t.followLife(ctx, known)
	}, t.followNodes, behind(t.work), behind(t.follow), behind(t.serve)}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var first error
	for range parts {
		if err := <-ended; err != nil && first == nil {
			first = err
		}
		cancel()
	}
	return first
}

// work does whatever is wished for or ordered, one at a time; orders also while a fit computes.
func (t *Trainer) work(ctx context.Context) error {
	every := time.NewTicker(t.o.Every)
	defer every.Stop()
	cool := time.NewTicker(t.o.CoolDown)
	defer cool.Stop()
	var fitted time.Time // end of the last fit
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-cool.C:
			if time.Since(fitted) < t.coolDown() {
				continue
			}
			if w := t.due.Swap(nil); w != nil {
				t.fresh.Store(0)
				t.grant(ctx, *w)
				fitted = time.Now()
			}
		case <-every.C:
			if t.fresh.Load() > 0 {
				t.fresh.Store(0)
				t.grant(ctx, wish{targets: schemas.Targets(), reason: "on schedule"})
				fitted = time.Now()
			}
		case w := <-t.wishes:
			t.grant(ctx, w)
			fitted = time.Now()
		case o := <-t.orders:
			o.carryOut(ctx)
		case <-t.corrections:
			t.correctInTime(ctx)
		}
	}
}

// aside has something computed that takes long, and carries out orders and corrections meanwhile:
// neither to go back to another regressor nor what drifts waits for a fit.
func (t *Trainer) aside(ctx context.Context, compute func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- compute() }()
	for {
		select {
		case err := <-ended:
			return err
		case o := <-t.orders:
			o.carryOut(ctx)
		case <-t.corrections:
			t.correctInTime(ctx)
		}
	}
}

// grant fulfils a wish.
func (t *Trainer) grant(ctx context.Context, w wish) {
	begin := time.Now()
	reply, err := t.train(ctx, w)
	t.fitTook.Store(int64(time.Since(begin)))
	if err != nil && ctx.Err() == nil {
		t.log.Warn("not trained", "reason", w.reason, "error", err)
	}
	if w.reply != nil {
		w.reply <- outcome{reply, err}
	}
}

func (t *Trainer) serve(ctx context.Context) error {
	return t.bus.Serve(ctx, bus.Service{
		Name:        "courier-trainer",
		Version:     t.o.Version,
		Description: "fits regressors, judges them, and puts them in use",
		Endpoints: []bus.Endpoint{
			bus.Handle(schemas.SubjectRegressorTrain, func(_ context.Context, q *schemas.TrainRequest) (any, error) {
				targets := schemas.Targets()
				if q.Target != "" {
					targets = []string{q.Target}
				}
				w := wish{
					targets: targets,
					reason:  "asked for",
					promote: q.Promote,
					asked:   true,
					reply:   make(chan outcome, 1),
				}
				select {
				case t.wishes <- w:
				case <-ctx.Done():
					return nil, errStops
				}
				select {
				case o := <-w.reply:
					return o.reply, o.err
				case <-ctx.Done():
					return nil, errStops
				}
			}),
			bus.Handle(schemas.SubjectRegressorPromote, func(_ context.Context, q *schemas.PromoteRequest) (any, error) {
				return t.order(ctx, func(ctx context.Context) (any, error) {
					return t.promoteAsked(ctx, q)
				})
			}),
			bus.Handle(schemas.SubjectRegressorRollback, func(_ context.Context, q *schemas.RollbackRequest) (any, error) {
				return t.order(ctx, func(ctx context.Context) (any, error) {
					return t.rollbackAsked(ctx, q)
				})
			}),
			bus.Handle(schemas.SubjectRegressorList, func(_ context.Context, q *schemas.RegressorListRequest) (any, error) {
				return schemas.RegressorList{Regressors: t.list(q.Target)}, nil
			}),
		},
	})
}

var errStops = &schemas.Error{Code: schemas.CodeUnavailable, Message: "the trainer stops"}

// order has something done by the goroutine that works, and waits for it.
func (t *Trainer) order(ctx context.Context, do func(context.Context) (any, error)) (any, error) {
	o := order{do, make(chan answer, 1)}
	select {
	case t.orders <- o:
	case <-ctx.Done():
		return nil, errStops
	}
	select {
	case a := <-o.reply:
		return a.reply, a.err
	case <-ctx.Done():
		return nil, errStops
	}
}

// list tells every regressor of a target, or of all, and how challengers stand.
func (t *Trainer) list(target string) []schemas.RegressorVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.life.List(target)
	for i := range all {
		v := &all[i]
		if trial := t.trials[v.Target]; v.State == schemas.RegressorChallenger && trial != nil &&
			trial.rival.predictor == t.loaded[v.ManifestDigest].of() {
			v.Judgement = trial.judgement()
			_, reason := judge(&v.Judgement)
			v.Reason = "so far " + reason
		}
	}
	return all
}
