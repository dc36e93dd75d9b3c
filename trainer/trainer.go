package trainer

import (
	"context"
	"log/slog"
	"time"

	"courier/bus"
	"courier/regress/evidence"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// New returns a trainer that is not running yet. history returns the database's events, or nil
// while there is no database: then all events come from the log.
func New(b *bus.Bus, history func() History, o Options, log *slog.Logger, reg prometheus.Registerer) *Trainer {
	o = o.withDefaults()
	t := &Trainer{
		bus:            b,
		history:        history,
		expectsHistory: history != nil,
		log:            log,
		metrics:        newMetrics(reg),
		o:              o,
	}
	if history == nil {
		t.history = func() History { return nil }
	}
	return t
}

// Run blocks until ctx ends, which cancels a running fit. Of several trainers one holds the lease
// and works; the others wait for it.
//
//	REGRESSOR stream ──► followRegistry ──┐ champions
//	JOB stream ──► follow: past ◄─────────┘
//	                 │ fit request
//	regressor.* ──► serve
//	                 │ fit request, command
//	                 ▼
//	        work: recall → fit → trained, promoted
func (t *Trainer) Run(ctx context.Context) error {
	return t.bus.Hold(ctx, schemas.LeaseTrainer, schemas.LeaseTTL, t.run)
}

// run works while the lease is held. Each call replays the log from the start.
func (t *Trainer) run(ctx context.Context) error {
	t.fitReasons = make(chan fitReason, 1)
	t.commands = make(chan func(context.Context), 8)
	t.exampleRequests = make(chan exampleRequest)
	t.registry = NewRegistry()
	t.champions.Store(&map[string]*loadedChampion{})
	t.newEpochs.Store(0)
	t.memories = map[string]*evidence.Memory{}
	for _, target := range schemas.Targets() {
		t.memories[target] = &evidence.Memory{}
	}

	replayed := make(chan struct{}) // the registry is up to date
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return t.followRegistry(ctx, replayed) })
	for _, part := range []func(context.Context) error{t.work, t.follow, t.serve} {
		parts.Go(func() error {
			select {
			case <-replayed:
				return part(ctx)
			case <-ctx.Done():
				return nil
			}
		})
	}
	return parts.Wait()
}

// work carries out fits and commands, one at a time.
func (t *Trainer) work(ctx context.Context) error {
	cool := time.NewTicker(t.o.CoolDown)
	defer cool.Stop()
	t.fittedAt = time.Time{}
	pending := reasonNone // for the fit that waits for the cool-down
	fitPending := func() {
		isFirst := (*t.champions.Load())[schemas.TargetEpochTime] == nil
		// Each run requests a fit, so that fits may take half of the time.
		isCooling := !isFirst && time.Since(t.fittedAt) < max(t.o.CoolDown, t.fitDuration)
		if pending == reasonNone || isCooling || t.imports.isRunning(time.Now(), t.o.CoolDown) {
			return
		}
		reason := pending
		pending = reasonNone
		_, _ = t.train(ctx, schemas.Targets(), reason) // it has logged its error
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-cool.C:
			fitPending()
		case pending = <-t.fitReasons:
			fitPending()
		case command := <-t.commands:
			command(ctx)
		}
	}
}

// serve replies to the requests of the REGRESSOR subjects until ctx ends.
func (t *Trainer) serve(ctx context.Context) error {
	train := func(_ context.Context, q *schemas.TrainRequest) (any, error) {
		targets := schemas.Targets()
		if q.Target != "" {
			targets = []string{q.Target}
		}
		return t.submit(ctx, func(ctx context.Context) (any, error) {
			return t.train(ctx, targets, reasonRequest)
		})
	}
	promote := func(_ context.Context, q *schemas.PromoteRequest) (any, error) {
		return t.submit(ctx, func(ctx context.Context) (any, error) {
			return t.handlePromote(ctx, q)
		})
	}
	rollback := func(_ context.Context, q *schemas.RollbackRequest) (any, error) {
		return t.submit(ctx, func(ctx context.Context) (any, error) {
			return t.handleRollback(ctx, q)
		})
	}
	list := func(_ context.Context, q *schemas.RegressorListRequest) (any, error) {
		return schemas.RegressorList{Regressors: t.list(q.Target)}, nil
	}
	return t.bus.Serve(ctx, bus.Service{
		Name:        "courier-trainer",
		Version:     t.o.Version,
		Description: "fits regressors and promotes them",
		Endpoints: []bus.Endpoint{
			bus.Handle(schemas.SubjectRegressorTrain, train),
			bus.Handle(schemas.SubjectRegressorPromote, promote),
			bus.Handle(schemas.SubjectRegressorRollback, rollback),
			bus.Handle(schemas.SubjectRegressorList, list),
		},
	})
}

// submit lets the work goroutine execute a command, and waits for the result.
func (t *Trainer) submit(ctx context.Context, do func(context.Context) (any, error)) (any, error) {
	answer := make(chan result, 1)
	command := func(ctx context.Context) {
		reply, err := do(ctx)
		answer <- result{reply, err}
	}
	a, err := ask(ctx, t.commands, command, answer)
	if err != nil {
		return nil, err
	}
	return a.reply, a.err
}

// list returns the regressors of a target, or of all targets ("").
func (t *Trainer) list(target string) []schemas.RegressorVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.registry.List(target)
}
