package trainer

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/regress/evidence"
	"courier/schemas"
)

// Options of a trainer. The tags are those of the flags of courier trainer and all. A zero field means a
// default; see withDefaults.
type Options struct {
	NewEpochs int           `help:"Fit after this number of new epochs." default:"40" env:"COURIER_NEW_EPOCHS"`
	CoolDown  time.Duration `help:"Minimum time between two automatic fits." default:"1s" env:"COURIER_COOL_DOWN"`
	Window    time.Duration `name:"example-window" help:"Only use runs of this most recent period; 0: no limit. Imported runs may be years old." default:"87600h" env:"COURIER_EXAMPLE_WINDOW"` // below 0: no limit
	Limits    Limits        `embed:""`
	Examples  int           `name:"most-examples" help:"Maximum number of examples of a fit: the newest of each configuration, and at least one of each." default:"10000" env:"COURIER_MOST_EXAMPLES"` // see thin

	Version string `kong:"-"` // version of the program, for manifests; "0.0.0"
	Threads int    `kong:"-"` // threads of a fit; 1

	setAside []evidence.SetAside     // runs that were left out of a fit
	memory   *evidence.Memory        // of previous fits of the target; nil: none
	step     func(name string) error // test hook after each step; an error stops the trainer
}

// defaultWindow is 10 years because imported runs may be that old. Limits bound the memory, and
// drift detection handles old examples, so a shorter window is seldom needed.
const defaultWindow = 10 * 365 * 24 * time.Hour

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "0.0.0")
	o.NewEpochs = cmp.Or(o.NewEpochs, 40)
	o.CoolDown = cmp.Or(o.CoolDown, 5*time.Second)
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.Examples = cmp.Or(o.Examples, 10_000)
	if o.step == nil {
		o.step = func(string) error { return nil }
	}
	return o
}

// horizon returns the instant before which events are ignored; zero if there is none.
func (o *Options) horizon(now time.Time) time.Time {
	if o.Window < 0 {
		return time.Time{}
	}
	return now.Add(-o.Window)
}

// History reads the job events of a database in the order of their sequences: started, epoch,
// ended. They are complete up to some sequence of the log.
type History interface {
	Events(ctx context.Context, since time.Time, yield func(schemas.Event) error) error
}

// Trainer fits regressors and promotes them.
type Trainer struct {
	bus     *bus.Bus
	history func() History

	expectsHistory bool // a database may become available later

	log             *slog.Logger
	metrics         *metrics
	o               Options
	fitReasons      chan fitReason                             // requests of automatic fits
	commands        chan func(context.Context)                 // other work that only the work goroutine may do
	champions       atomic.Pointer[map[string]*loadedChampion] // by target
	newEpochs       atomic.Int64                               // epochs since the last fit
	imports         importClock
	exampleRequests chan exampleRequest         // to the goroutine that owns the past
	fittedAt        time.Time                   // end of the last fit; of the work goroutine
	fitDuration     time.Duration               // of the last fit; of the work goroutine
	memories        map[string]*evidence.Memory // of the fits of each target

	mu       sync.Mutex
	registry *Registry
}

// result is the outcome of a request to the work goroutine.
type result struct {
	reply any
	err   error
}

// ask sends a question to the goroutine that answers it, and waits for the answer.
func ask[Q, A any](ctx context.Context, to chan<- Q, question Q, answer <-chan A) (a A, err error) {
	select {
	case to <- question:
	case <-ctx.Done():
		return a, errStopping
	}
	select {
	case a = <-answer:
		return a, nil
	case <-ctx.Done():
		return a, errStopping
	}
}

var errStopping = schemas.Errorf(schemas.CodeUnavailable, "",
	"the trainer is stopping; retry in a moment")

// fitReason is the reason of a fit, as events contain it.
type fitReason string

const (
	reasonNone         fitReason = ""
	reasonEnoughEpochs fitReason = "enough new epochs"
	reasonRunEnded     fitReason = "a run has ended"
	reasonRequest      fitReason = "requested"
)

// exampleSet holds the examples of one target. It is immutable.
type exampleSet struct {
	examples []Example
	aside    []evidence.SetAside // runs that were left out
	last     uint64              // sequence of the last event of the past
	skipped  map[string]int      // by reason
}

// exampleRequest asks the owner of the past for examples.
type exampleRequest struct {
	target   string
	sequence uint64 // the log must have been read up to here
	reply    chan exampleSet
}
