//go:build unix

package trainer

import (
	"container/heap"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/regress/treefile"
	"courier/schemas"
)

// year generates the events of a cluster. Half of its jobs run on 200 nodes, the others on pods
// whose name is never used again, and one job in ten trains a model that is never trained again.
type year struct {
	random   *rand.Rand
	now      time.Time
	models   int // number of models that are trained repeatedly
	jobs     int
	sequence uint64
	running  jobHeap
	feed     func(e schemas.Event, sequence uint64)
}

// yearJob is a running job of a year.
type yearJob struct {
	name    string
	set     schemas.Setting
	next    time.Time // end of its current epoch
	begun   time.Time
	seconds float64 // of its current epoch
	done    uint32
}

type jobHeap []*yearJob

func (h jobHeap) Len() int           { return len(h) }
func (h jobHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h jobHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *jobHeap) Push(j any)        { *h = append(*h, j.(*yearJob)) }
func (h *jobHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	*h = (*h)[:last]
	return j
}

func newYear(feed func(schemas.Event, uint64)) *year {
	return &year{
		random: rand.New(rand.NewPCG(7, 8)),
		now:    time.Now().UTC().Add(-366 * 24 * time.Hour).Truncate(time.Hour),
		models: 30,
		feed:   feed,
	}
}

// days generates some days with a number of jobs each.
func (y *year) days(days, jobsPerDay int) {
	gap := 24 * time.Hour / time.Duration(jobsPerDay)
	for range days * jobsPerDay {
		y.now = y.now.Add(gap)
		for len(y.running) > 0 && !y.running[0].next.After(y.now) {
			y.epoch(y.running[0])
		}
		y.start()
	}
}

func (y *year) start() {
	y.jobs++
	number := strconv.Itoa(y.jobs)
	model := "model-" + strconv.Itoa(y.random.IntN(y.models))
	if y.jobs%10 == 0 {
		model = "experiment-" + number
	}
	node := "node-" + strconv.Itoa(y.random.IntN(200))
	if y.jobs%2 == 0 {
		node = "pod-" + number
	}
	j := &yearJob{name: "job-" + number, begun: y.now}
	j.set = schemas.Setting{
		Model:     model,
		BatchSize: 4 << y.random.IntN(6),
		CPUs:      1 << y.random.IntN(4),
		Epochs:    uint32(10 + y.random.IntN(41)),
		Nodes:     []string{node},
	}
	e := &schemas.Started{Setting: j.set, NodeCores: 8}
	e.JobStamp = y.stamp(j, schemas.EventStarted, y.now)
	y.publish(e)
	y.prepare(j, y.now)
	heap.Push(&y.running, j)
}

// prepare draws the time of the next epoch: it depends on the batch size, CPUs and model.
func (y *year) prepare(j *yearJob, from time.Time) {
	work := 30 * (1 + 8/float64(j.set.BatchSize)) * (1 + float64(len(j.set.Model)%5))
	j.seconds = work / math.Sqrt(float64(j.set.CPUs)) * math.Exp(0.05*y.random.NormFloat64())
	j.next = from.Add(time.Duration(j.seconds * float64(time.Second)))
}

func (y *year) epoch(j *yearJob) {
	j.done++
	accuracy := 1 - 1/float64(1+j.done)
	e := &schemas.Epoch{Setting: j.set, Epoch: j.done, DurationSeconds: j.seconds, NodeCores: 8,
		DurationSource: schemas.DurationReported, Accuracy: &accuracy}
	e.JobStamp = y.stamp(j, strconv.Itoa(int(j.done)), j.next)
	y.publish(e)
	if j.done < j.set.Epochs {
		y.prepare(j, j.next)
		heap.Fix(&y.running, 0)
		return
	}
	heap.Pop(&y.running)
	end := &schemas.Ended{Setting: j.set, Outcome: schemas.EventFinished, EpochsDone: j.done,
		DurationSeconds: j.next.Sub(j.begun).Seconds(), Accuracy: &accuracy}
	end.JobStamp = y.stamp(j, schemas.EventFinished, j.next)
	y.publish(end)
}

func (y *year) stamp(j *yearJob, what string, at time.Time) schemas.JobStamp {
	id := j.name + "/1/" + what
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: j.name, Run: 1}
}

func (y *year) publish(e schemas.Event) {
	y.sequence++
	y.feed(e, y.sequence)
}

// yearTrainer returns a trainer and its follower; no goroutine runs.
func yearTrainer(t *testing.T, l Limits) (*Trainer, *follower) {
	tr := New(bustest.New(t), nil, Options{Limits: l}, slog.New(slog.DiscardHandler), nil)
	tr.commands, tr.fitReasons = make(chan func(context.Context), 8), make(chan fitReason, 1)
	tr.champions.Store(&map[string]*loadedChampion{})
	return tr, &follower{past: NewLimitedPast(l)}
}

// setChampion fits a champion of epoch times on the past, which later jobs are compared with.
func (fw *follower) setChampion(t *testing.T, tr *Trainer) {
	t.Helper()
	const target = schemas.TargetEpochTime
	files, err := Fit(t.Context(), target, fw.past.Examples(target), nil, Options{Examples: 300})
	if err != nil {
		t.Fatal(err)
	}
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	tr.champions.Store(&map[string]*loadedChampion{target: {manifest: file.Manifest()}})
}

// counts returns the size and the bound of everything that grows with events.
func (fw *follower) counts(l Limits) map[string][2]int {
	l = l.withDefaults()
	runs := l.Runs + l.Spans + l.OpenRuns
	p := fw.past
	_, epochs := p.Len()
	return map[string][2]int{
		"runs":            {len(p.runs), runs},
		"runs in order":   {len(p.order), 2*(l.Runs+l.OpenRuns) + 1},
		"runs on shelf":   {p.archive.runs, l.Runs},
		"configurations":  {len(p.archive.configurations), l.Runs},
		"epochs":          {epochs, l.Epochs + l.RunEpochs*p.open.Len()},
		"ended neighbors": {len(p.ended), l.Spans},
		"nodes":           {len(p.nodes), runs},
		"nodes' hardware": {len(p.fleet), runs},
		"nodes in index":  {len(p.neighbours.nodes), l.Spans + l.OpenRuns},
	}
}

// A trainer needs as much memory after twelve months as after one. With
// COURIER_YEAR_JOBS_PER_DAY the year has full size and the heap is reported.
func TestTrainer_KeepsNoMoreAfterAYear(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
	const usual = 10_000
	jobs := 4
	l := Limits{SettingRuns: 5, Runs: 40, Epochs: 5_000, RunEpochs: 30, Spans: 20, OpenRuns: 30}
	full, _ := strconv.Atoi(os.Getenv("COURIER_YEAR_JOBS_PER_DAY"))
	if full > 0 {
		jobs, l = full, Limits{}
	}
	tr, fw := yearTrainer(t, l)
	events := 0
	y := newYear(func(e schemas.Event, sequence uint64) {
		events++
		tr.handleEvent(t.Context(), fw, bus.Record{Event: e, Sequence: sequence, StoredAt: e.Stamped().At})
	})
	months := 12
	if n, err := strconv.Atoi(os.Getenv("COURIER_YEAR_MONTHS")); err == nil {
		months = n
	}
	for month := range months {
		begin, before := cpuTime(t), events
		y.days(30, jobs)
		if full > 0 {
			reportMonth(t, fw, month+1, cpuTime(t)-begin, events-before)
		} else if month == 1 {
			fw.setChampion(t, tr)
		}
		for what, n := range fw.counts(l) {
			if n[0] > n[1] {
				t.Errorf("after month %d: %d %s, want at most %d", month+1, n[0], what, n[1])
			}
		}
	}
	if full >= usual {
		reportFit(t, fw)
	}
	if full == 0 && fw.past.archive.runs != l.Runs {
		t.Errorf("the past has %d runs after a year, want its limit, %d", fw.past.archive.runs, l.Runs)
	}
}

// reportMonth reports the live heap and the time of an event.
func reportMonth(t *testing.T, fw *follower, month int, took time.Duration, events int) {
	t.Helper()
	heap := liveHeap()
	runs, epochs := fw.past.Len()
	t.Logf("month %2d: %4.0f MB live, %d runs, %d epochs, %d runs known, "+
		"%d nodes, %d events, %.0f ns of CPU time each",
		month, heap, runs, epochs, len(fw.past.runs), len(fw.past.nodes), events,
		float64(took.Nanoseconds())/float64(events))
	if heap > 600 {
		t.Errorf("after month %d the heap is %.0f MB, want at most 600", month, heap)
	}
}

// reportFit fits the targets one after the other as a trainer does, and reports the memory that
// the process took from the system.
func reportFit(t *testing.T, fw *follower) {
	t.Helper()
	for _, target := range schemas.Targets() {
		begin := time.Now()
		examples := fw.past.Examples(target)
		if len(examples) == 0 {
			continue // no job of the year has a start-up time
		}
		read := time.Since(begin)
		if _, err := Fit(context.Background(), target, examples, nil, Options{}); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%s: %d examples in %v, fitted in %v, %d MB from the system", target, len(examples),
			read.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), m.Sys>>20)
		if m.Sys > 600<<20 {
			t.Errorf("with a fit of %s the process has %d MB, want at most 600", target, m.Sys>>20)
		}
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// liveHeap returns the size of the live heap, in MB.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
