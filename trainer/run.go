package trainer

import (
	"cmp"
	"container/list"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

type runKey struct {
	job string
	run uint32
}

// run is one start of a job, reduced to what examples are made of.
type run struct {
	span    schemas.Span
	key     runKey
	first   uint64 // sequence of its first event
	number  int    // in the order of the log
	model   string // as its first event names it
	dataset string // likewise
	at      time.Time

	epochs  []epoch // by number; one in stride
	stride  int     // 0: every epoch is kept so far
	told    int     // epochs in order, kept or not
	last    uint32  // number of the last of them
	lastEnd int64   // of the last of them, in nanoseconds since 1970
	batch   uint32  // batch size of the last of them
	pure    int     // kept epochs before the first change of the batch size
	times   runTimes

	started      bool // its started event came
	changed      bool // the batch size changed
	back         bool // an epoch's number was not above the last
	gap          bool // an epoch is missing between others
	inconsistent bool // an event names another model or dataset than the first

	outcome string // of its last ended event; "" while it runs
	lost    string // ID of the last lost event
	ends    int    // ended events that were applied
	whole   *wholeRun

	frozen    int   // leading epochs whose load is final
	startLoad *load // before the first epoch, once final

	indexed indexState
	listed  []string // nodes under which neighbours finds it
	shelf   *shelved
	onShelf *list.Element
	onOpen  *list.Element
	dropped bool // its examples are gone; its span may still be a neighbour's
}

// indexState says where neighbours keeps a run.
type indexState uint8

const (
	notIndexed indexState = iota
	indexedOpen
	indexedEnded
)

// wholeRun is a finished run whose epochs were not recognised.
type wholeRun struct {
	epochs, batch, cpus uint32
	seconds, startup    float64 // 0: unknown
	accuracy            float64 // NaN: unknown
	at                  time.Time
	load                *load // once final
}

// epoch is what is kept of an epoch. Figures that were not measured are NaN.
type epoch struct {
	at       int64   // its end, in nanoseconds since 1970
	seconds  float64 // its duration
	accuracy float64
	load     load // valid for the first run.frozen epochs

	observed observation

	number, batch, cpus uint32
	arrival             bool // timed by the arrival of lines
	starts              bool // the command may have been started within it
	mixed               bool // the batch size changed before it
}

// load is a schemas.Load of a run and the node where the run has it.
type load struct {
	jobs, processes, stable float64
	node                    int // index among the nodes of the run

	foreignCPU, foreignIOWait tenths
}

// tenths is a ratio in steps of a tenth, as foreign loads are: 0 is unknown, n is (n-1)/10.
type tenths uint8

func tenthsOf(r schemas.Ratio) tenths {
	if !r.Known {
		return 0
	}
	return tenths(min(1+math.Round(10*r.Value), math.MaxUint8))
}

func (t tenths) ratio() (r schemas.Ratio) {
	if t == 0 {
		return r
	}
	return schemas.RatioOf(float64(t-1) / 10).Tenths()
}

// observation is a schemas.Observation in a quarter of its size. Ratios that are unknown are NaN.
type observation struct {
	cpuSeconds, seconds      float32
	ioWaitSeconds, ioSeconds float32
	cpu, ioWait              float32
	cores                    uint32
}

func observe(e *schemas.Epoch, since time.Time) observation {
	o := schemas.Observe(e, since)
	return observation{
		cpuSeconds:    float32(o.Usage.CPUSeconds),
		seconds:       float32(o.Usage.Seconds),
		ioWaitSeconds: float32(o.Usage.IOWaitSeconds),
		ioSeconds:     float32(o.Usage.IOSeconds),
		cpu:           float32(orNaN(e.NodeCPURatio)),
		ioWait:        float32(orNaN(e.NodeIOWaitRatio)),
		cores:         o.Cores,
	}
}

func (o *observation) full() schemas.Observation {
	return schemas.Observation{
		Usage: schemas.Usage{
			CPUSeconds:    float64(o.cpuSeconds),
			Seconds:       float64(o.seconds),
			IOWaitSeconds: float64(o.ioWaitSeconds),
			IOSeconds:     float64(o.ioSeconds),
		},
		Cores:  o.cores,
		CPU:    knownRatio(o.cpu),
		IOWait: knownRatio(o.ioWait),
	}
}

func knownRatio(v float32) (r schemas.Ratio) {
	if math.IsNaN(float64(v)) {
		return r
	}
	return schemas.RatioOf(float64(v))
}

// newEpoch keeps an epoch; since is when the epoch before it ended or its run started.
func newEpoch(e *schemas.Epoch, since time.Time) epoch {
	return epoch{
		at:       e.At.UnixNano(),
		seconds:  e.DurationSeconds,
		accuracy: orNaN(e.Accuracy),
		observed: observe(e, since),
		number:   e.Epoch,
		batch:    e.BatchSize,
		cpus:     e.CPUs,
		arrival:  e.DurationSource == schemas.DurationArrival,
	}
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// end returns the end of the epoch.
func (e *epoch) end() time.Time { return time.Unix(0, e.at).UTC() }

// begin returns the begin of the epoch.
func (e *epoch) begin() time.Time {
	return e.end().Add(-time.Duration(e.seconds * float64(time.Second)))
}

// level names what was trained, as the levels of schemas.ColumnModel do.
func (r *run) level() string { return schemas.ModelLevel(r.model, r.dataset) }

// before returns when the last epoch ended or, before the first, when the run started.
func (r *run) before() time.Time {
	if r.told == 0 {
		return r.span.From
	}
	return time.Unix(0, r.lastEnd).UTC()
}

// add takes the next epoch of the run, whose number is above the last.
func (r *run) add(e *epoch, limit int) {
	e.starts = r.told == 0 || r.batch != e.batch
	r.changed = r.changed || r.told > 0 && r.batch != e.batch
	e.mixed = r.changed
	r.gap = r.gap || r.told > 0 && e.number != r.last+1
	r.times.add(e.seconds)
	index := r.told
	r.told, r.last, r.batch, r.lastEnd = r.told+1, e.number, e.batch, e.at
	r.span.Usage.Add(e.observed.full().Usage)
	if r.stride > 0 && index%r.stride != 0 {
		return
	}
	r.epochs = append(r.epochs, *e)
	if !e.mixed {
		r.pure++
	}
	if len(r.epochs) > limit {
		r.thin()
	}
}

// thin keeps every second epoch, the first included, so that a long run stays covered evenly.
func (r *run) thin() {
	kept := r.epochs[:0]
	for i := 0; i < len(r.epochs); i += 2 {
		kept = append(kept, r.epochs[i])
	}
	r.epochs = kept
	r.stride = 2 * max(r.stride, 1)
	r.frozen, r.pure = (r.frozen+1)/2, (r.pure+1)/2
}

// knows reports whether an epoch event is a copy of one that the run had already: the event
// has the identity of every epoch with its number, or the same figures.
func (r *run) knows(e *schemas.Epoch) bool {
	byNumber := func(kept epoch, number uint32) int { return cmp.Compare(kept.number, number) }
	i, found := slices.BinarySearchFunc(r.epochs, e.Epoch, byNumber)
	if !found {
		return r.stride > 0 && e.Epoch >= r.epochs[0].number
	}
	kept := &r.epochs[i]
	return e.ID() == schemas.EpochID(e.JobID, e.Run, e.Epoch) ||
		kept.at == e.At.UnixNano() && kept.seconds == e.DurationSeconds
}

// lastKnown returns the time up to which the run is known.
func (r *run) lastKnown() time.Time {
	switch {
	case !r.span.Until.IsZero():
		return r.span.Until
	case len(r.epochs) > 0:
		return r.epochs[len(r.epochs)-1].end()
	}
	return r.span.From
}

// drop forgets what examples are made of.
func (r *run) drop() {
	r.epochs, r.whole, r.startLoad, r.dropped = nil, nil, nil, true
	r.frozen, r.pure = 0, 0
}

// isLost reports whether the run ended by silence only: it may come back.
func (r *run) isLost() bool { return r.outcome == schemas.EventLost }
