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
func New(
	b *bus.Bus, history func() History, o Options, log *slog.Logger, reg prometheus.Registerer,
) *Trainer {
	o = o.withDefaults()
	t := &Trainer{
		bus:            b,
		history:        history,
		expectsHistory: history != nil,
		log:            log,
		metrics:        newMetrics(reg),
		o:              o,
		fitSignal:      make(chan struct{}, 1),
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
	t.fitRequests = make(chan fitRequest, 1)
	t.commands = make(chan func(context.Context), 8)
	t.exampleRequests = make(chan exampleRequest)
	t.registry = NewRegistry()
	t.champions.Store(&map[string]*loadedChampion{})
	t.newEpochs.Store(0)
	t.pendingFit.Store(nil)
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

// work carries out fit requests and commands, one at a time.
func (t *Trainer) work(ctx context.Context) error {
	cool := time.NewTicker(t.o.CoolDown)
	defer cool.Stop()
	var fitted time.Time // end of the last fit
	fit := func(request fitRequest) {
		t.newEpochs.Store(0)
		t.handleFit(ctx, request)
		fitted = time.Now()
	}
	fitPending := func() {
		isFirst := (*t.champions.Load())[schemas.TargetEpochTime] == nil
		isCooling := !isFirst && time.Since(fitted) < t.coolDown()
		if isCooling || t.imports.isRunning(time.Now(), t.o.CoolDown) {
			return
		}
		if request := t.pendingFit.Swap(nil); request != nil {
			fit(*request)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-cool.C:
			fitPending()
		case <-t.fitSignal:
			fitPending()
		case request := <-t.fitRequests:
			fit(request)
		case command := <-t.commands:
			command(ctx)
		}
	}
}

// handleFit fits the targets of a request and replies.
func (t *Trainer) handleFit(ctx context.Context, request fitRequest) {
	begin := time.Now()
	reply, err := t.train(ctx, request)
	t.fitDuration.Store(int64(time.Since(begin)))
	if err != nil && ctx.Err() == nil {
		t.log.Warn("fit ended with an error", "reason", request.reason, "error", err)
	}
	if request.reply != nil {
		request.reply <- result{reply, err}
	}
}

// serve replies to the requests of the REGRESSOR subjects until ctx ends.
func (t *Trainer) serve(ctx context.Context) error {
	train := func(_ context.Context, q *schemas.TrainRequest) (any, error) {
		return t.handleTrain(ctx, q)
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

// handleTrain requests a fit and waits for its result.
func (t *Trainer) handleTrain(ctx context.Context, q *schemas.TrainRequest) (any, error) {
	targets := schemas.Targets()
	if q.Target != "" {
		targets = []string{q.Target}
	}
	request := fitRequest{
		targets: targets,
		reason:  reasonRequest,
		reply:   make(chan result, 1),
	}
	a, err := ask(ctx, t.fitRequests, request, request.reply)
	if err != nil {
		return nil, err
	}
	return a.reply, a.err
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
