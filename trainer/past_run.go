package trainer

import (
	"cmp"
	"container/list"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// runKey identifies a run.
type runKey struct {
	job string
	run uint32
}

// run is one start of a job, reduced to the data of its examples.
type run struct {
	span    schemas.Span
	key     runKey
	number  int    // in the order of the log
	model   string // as learned, of its first event
	dataset string // of its first event
	at      time.Time

	epochs     []keptEpoch // by number; one in stride
	stride     int         // every stride-th epoch is kept; 0 means all
	epochCount int         // epochs in order, kept or not
	last       uint32      // number of the last epoch
	lastEnd    int64       // end of the last epoch, in nanoseconds since 1970
	batch      uint32      // batch size of the last epoch
	times      runTimes

	hasStarted   bool // its started event arrived
	isElastic    bool // its CPUs may change
	batchChanged bool // the batch size changed
	wentBack     bool // an epoch number did not increase
	inconsistent bool // events name different models or datasets

	outcome string // of its last ended event; "" while it is open
	lostID  string // ID of the last lost event
	ends    int    // number of ended events that were applied

	frozen    int      // number of leading epochs whose load is final
	startLoad *runLoad // before the first epoch; nil until final

	indexed      indexState
	indexedNodes []string // nodes under which it is in the neighbours
	archived     *archived
	inArchive    *list.Element
	inOpen       *list.Element
	dropped      bool // without examples; its span may still be among the neighbours
}

// indexState is the list of the neighbours that holds a run.
type indexState uint8

const (
	notIndexed indexState = iota
	indexedOpen
	indexedEnded
)

// keptEpoch is the part of an epoch event that a Past keeps, or a whole run whose epochs were not
// recognized. Unknown figures are NaN.
type keptEpoch struct {
	at       int64   // its end, in nanoseconds since 1970
	seconds  float64 // its duration; of count epochs
	accuracy float64
	load     runLoad // valid for the first run.frozen epochs

	observed schemas.Observation

	number, batch, cpus, loaders uint32
	count                        uint32 // epochs of a whole run; 0: one epoch
	timedByArrival               bool   // timed by the arrival of output lines
	mayContainStartup            bool   // the command may have started within it
	afterBatchChange             bool   // the batch size changed before it
	hasBurst                     bool   // it used more CPUs than it was granted
}

// runLoad is the load of a run and the node where it has that load.
type runLoad struct {
	schemas.Load
	node int // index in the nodes of the run
}

// newEpoch returns the kept part of an epoch. since is the end of the previous epoch or the start
// of the run.
func newEpoch(e *schemas.Epoch, since time.Time) keptEpoch {
	return keptEpoch{
		at:             e.At.UnixNano(),
		seconds:        e.DurationSeconds,
		accuracy:       orNaN(e.Accuracy),
		observed:       schemas.Observe(e, since),
		number:         e.Epoch,
		batch:          e.BatchSize,
		cpus:           e.Processes(),
		loaders:        e.Loaders,
		timedByArrival: e.DurationSource == schemas.DurationArrival,
	}
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func (e *keptEpoch) end() time.Time { return time.Unix(0, e.at).UTC() }

func (e *keptEpoch) begin() time.Time {
	return e.end().Add(-time.Duration(e.seconds * float64(time.Second)))
}

// previousEnd returns the end of the last epoch or, before the first, the start of the run.
func (r *run) previousEnd() time.Time {
	if r.epochCount == 0 {
		return r.span.From
	}
	return time.Unix(0, r.lastEnd).UTC()
}

// add adds the next epoch of the run.
func (r *run) add(e *keptEpoch, limit int) {
	e.mayContainStartup = r.batch != e.batch
	if r.epochCount == 0 {
		const latest = 0.05 // of the epoch, by the delays of events
		e.mayContainStartup = e.begin().Sub(r.span.From).Seconds() < latest*e.seconds
	}
	r.batchChanged = r.batchChanged || r.epochCount > 0 && r.batch != e.batch
	e.afterBatchChange = r.batchChanged
	r.times.add(e.seconds)
	index := r.epochCount
	r.epochCount, r.last, r.batch, r.lastEnd = r.epochCount+1, e.number, e.batch, e.at
	r.span.Usage.Add(e.observed.Usage)
	if r.stride > 0 && index%r.stride != 0 {
		return
	}
	r.epochs = append(r.epochs, *e)
	if len(r.epochs) > limit {
		r.thin()
	}
}

// thin keeps every second epoch, including the first, so that the kept epochs cover a long run
// evenly.
func (r *run) thin() {
	kept := r.epochs[:0]
	for i := 0; i < len(r.epochs); i += 2 {
		kept = append(kept, r.epochs[i])
	}
	r.epochs = kept
	r.stride = 2 * max(r.stride, 1)
	r.frozen = (r.frozen + 1) / 2
}

// isDuplicate reports whether an epoch event is a duplicate: its ID is the standard ID of its
// number, or it has the figures of a kept epoch.
func (r *run) isDuplicate(e *schemas.Epoch) bool {
	byNumber := func(kept keptEpoch, number uint32) int { return cmp.Compare(kept.number, number) }
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

// drop frees the data of examples.
func (r *run) drop() {
	r.epochs, r.startLoad, r.dropped, r.frozen = nil, nil, true, 0
}

// isLost reports whether the run ended because it was silent, so that it may continue.
func (r *run) isLost() bool { return r.outcome == schemas.EventLost }

// Reasons for skipping a whole run. Published data sets contain such runs.
const (
	skippedBack   = "run whose epoch numbers decrease: a restart, or the log of another job"
	skippedModel  = "run with several models or datasets: the log of another job"
	skippedCopied = "run with the epoch times of another run"
)

// modelTimes identifies a run by its model and its epoch times.
type modelTimes struct {
	model, dataset string
	hash           uint64
}

// implausible returns the reason for skipping a run; "" if it is plausible. seen holds the runs before
// it; implausible adds its own.
func (r *run) implausible(seen map[modelTimes]bool) string {
	switch {
	case r.wentBack:
		return skippedBack
	case r.inconsistent:
		return skippedModel
	case !r.times.areDistinctive():
		return ""
	}
	own := modelTimes{r.model, r.dataset, r.times.hash}
	if seen[own] {
		return skippedCopied
	}
	seen[own] = true
	return ""
}

// runTimes hashes the durations of a run's epochs, to detect copies of runs.
type runTimes struct {
	hash     uint64
	first    float64
	differ   bool
	epochs   int
	decimals int     // that all durations have at most
	bits     float64 // sum of log2(seconds) of the epochs
}

var timesSeed = maphash.MakeSeed()

func (t *runTimes) add(seconds float64) {
	if t.epochs == 0 {
		t.first = seconds
	}
	t.epochs++
	t.differ = t.differ || seconds != t.first
	t.bits += math.Log2(seconds)
	for t.decimals < maxDecimals && !isWhole(seconds*math.Pow10(t.decimals)) {
		t.decimals++
	}
	t.hash = maphash.Comparable(timesSeed, [2]uint64{t.hash, math.Float64bits(seconds)})
}

// maxDecimals is the resolution of clocks, in decimals of a second.
const maxDecimals = 9

func isWhole(x float64) bool { return math.Abs(x-math.Round(x)) < 1e-6*max(1, math.Abs(x)*1e-3) }

// Parameters of the test for copies: epochs of a run vary by about a tenth, and a run with the same
// durations is a copy if these have so many bits that they do not agree by chance.
const (
	usualVariation  = 0.1
	distinctiveBits = 40
)

// areDistinctive reports whether a run of the model with the same durations must be a copy. Durations
// in whole seconds, as some frameworks print them, agree by chance.
func (t *runTimes) areDistinctive() bool {
	perEpoch := math.Log2(usualVariation) + float64(t.decimals)*math.Log2(10)
	return t.differ && t.bits+float64(t.epochs)*perEpoch >= distinctiveBits
}

// checkModel marks the run as inconsistent if an event names another model or dataset.
func (r *run) checkModel(s *schemas.Setting) {
	r.inconsistent = r.inconsistent || r.model != s.LearnedModel() || r.dataset != s.Dataset
}

// configuration groups runs whose examples are interchangeable.
type configuration struct {
	model       string
	dataset     string
	batch, cpus uint32
	jobs        int              // concurrent jobs, rounded
	hardware    schemas.Hardware // of the most loaded node, rounded
}

// archived holds the runs of one configuration.
type archived struct {
	of   configuration
	runs *list.List    // of *run, in the order of their ends
	at   *list.Element // in archive.sizes
	used *list.Element // in archive.used
}
