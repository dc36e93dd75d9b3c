package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

// BenchmarkRealRuns runs real trainings on this machine by courier all and courier run alone, without and with
// moves of CPUs. It reports the seconds of each training from its submission, the mean reduction, and the
// ratio of kept SLOs or of windows whose bottleneck was named right, if there are any; with -benchtime 5x as
// means with 95 % intervals. COURIER_REAL enables it, on a machine with two CPUs that is otherwise idle. -v
// prints the moves.
func BenchmarkRealRuns(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	for name, c := range realRuns {
		b.Run(name, func(b *testing.B) {
			values := map[string][]float64{}
			add := func(unit string, value float64) { values[unit] = append(values[unit], value) }
			for b.Loop() {
				before, after := newRealRun(b, &c, "dry-run"), newRealRun(b, &c, "on")
				before.run()
				after.run()
				sum := 0.0
				for i := range c.jobs {
					id := c.jobs[i].id
					reduction := 1 - after.seconds[id]/before.seconds[id]
					sum += reduction / float64(len(c.jobs))
					add(id+"-s-without", before.seconds[id])
					add(id+"-s-with", after.seconds[id])
					add(id+"-reduction", reduction)
					b.Logf("%s: %.1f s, with moves %.1f s (%+.0f %%)",
						id, before.seconds[id], after.seconds[id], -100*reduction)
				}
				add("mean-reduction", sum)
				if n := before.windows + after.windows; n > 0 {
					add("named-ratio", float64(before.named+after.named)/float64(n))
					b.Logf("bottleneck named in %d of %d windows", before.named+after.named, n)
				}
				if c.slo != "" {
					add("kept-without", float64(before.kept)/float64(len(c.jobs)))
					add("kept-with", float64(after.kept)/float64(len(c.jobs)))
				}
			}
			for _, unit := range slices.Sorted(maps.Keys(values)) {
				reportMean(b, values[unit], unit)
			}
		})
	}
}

// realJob is a training that may have one CPU or two.
type realJob struct {
	id      string
	cpus    string // empty: Courier chooses and moves them
	arrival time.Duration
	batch   string
	epochs  int
	command []string
	// bottlenecks are the true ones by number of CPUs.
	bottlenecks map[uint32]schemas.Bottleneck
}

// realRunCase has the trainings under an objective.
type realRunCase struct {
	flags []string  // of courier all
	slo   string    // of each training; empty: none
	tried []realJob // run before the others, one after the other
	// isKnown: all trainings have one model, whose times with one CPU and with two the tried ones showed.
	isKnown bool
	jobs    []realJob
}

// digitsWith returns the command of a training with some more flags.
func digitsWith(flags ...string) []string {
	return append([]string{
		"{program}", "workload", "digits", "--cpus", "{cpus}", "--batch-size", "{batch}", "--epochs", "{epochs}",
	}, flags...)
}

// largeDigits is a training that can use two CPUs.
var largeDigits = digitsWith("--augment", "80")

// queuedJobs returns trainings that arrive faster than they end on both CPUs.
func queuedJobs(n int) (all []realJob) {
	for i := range n {
		all = append(all, realJob{
			id: fmt.Sprint("job-", i), arrival: time.Duration(i) * 6 * time.Second, batch: "128",
			epochs: 25 + 15*(i%3), command: largeDigits,
		})
	}
	return all
}

var realRuns = map[string]realRunCase{
	// Three trainings start wrongly in different ways: "few" has one CPU and could use two, as its model has run
	// with two and no trainer learns that; "idle" holds two CPUs and waits for its input, and "threads" has as
	// many threads as the machine has CPUs, which wait for each other.
	"efficiency": {
		flags: []string{"--objective", "efficiency", "--trainer", "off"},
		tried: []realJob{{id: "few", cpus: "2", batch: "128", epochs: 1, command: largeDigits}},
		jobs: []realJob{
			{
				id: "few", batch: "128", epochs: 40, command: largeDigits,
				bottlenecks: map[uint32]schemas.Bottleneck{1: schemas.BottleneckCPU, 2: schemas.BottleneckCPU},
			},
			{
				id: "idle", batch: "32", epochs: 60,
				command:     []string{"sh", "-c", waitingTraining, "sh", "{program}", "{epochs}"},
				bottlenecks: map[uint32]schemas.Bottleneck{2: schemas.BottleneckSurplus},
			},
			{
				id: "threads", batch: "4", epochs: 30, command: digitsWith(),
				bottlenecks: map[uint32]schemas.Bottleneck{1: schemas.BottleneckCPU, 2: schemas.BottleneckThreads},
			},
		},
	},
	// Three trainings arrive one after the other, and the loss of the last one falls fastest.
	"quality": {
		flags: []string{"--objective", "quality"},
		tried: []realJob{
			{id: "one", cpus: "1", batch: "32", epochs: 8, command: largeDigits},
			{id: "two", cpus: "2", batch: "32", epochs: 8, command: largeDigits},
		},
		isKnown: true,
		jobs: []realJob{
			{id: "first", batch: "32", epochs: 60, command: digitsWith("--augment", "80", "--learning-rate", "0.002")},
			{
				id: "second", arrival: 15 * time.Second, batch: "32", epochs: 45,
				command: digitsWith("--augment", "80", "--learning-rate", "0.001"),
			},
			{
				id: "third", arrival: 30 * time.Second, batch: "32", epochs: 30,
				command: digitsWith("--augment", "80", "--learning-rate", "0.0001"),
			},
		},
	},
	// Eight trainings wait in a queue until Courier promises them their SLO.
	"slo": {
		flags: []string{"--objective", "slo", "--admission", "queue"},
		slo:   "40s",
		tried: []realJob{
			{id: "one", cpus: "1", batch: "128", epochs: 10, command: largeDigits},
			{id: "two", cpus: "2", batch: "128", epochs: 10, command: largeDigits},
		},
		isKnown: true,
		jobs:    queuedJobs(8),
	},
}

// waitingTraining is a training that waits for its input for most of an epoch.
const waitingTraining = `
epoch=0
while [ $epoch -lt $2 ]; do
  epoch=$((epoch + 1))
  start=$(date +%s%N)
  sleep 0.9
  "$1" workload digits --epochs 1 --augment 2 > "$COURIER_CONTROL.out"
  cpus=$(sed 's/.*"cpus":\([0-9]*\).*/\1/' "$COURIER_CONTROL")
  milliseconds=$((($(date +%s%N) - start) / 1000000))
  echo "{\"epoch\":$epoch,\"milliseconds\":$milliseconds,\"loss\":1,\"cpus\":$cpus}" |
    sed 's/"milliseconds":\([0-9]*\)\([0-9][0-9][0-9]\),/"seconds":\1.\2,/'
done`

// realRun is a run of all trainings.
type realRun struct {
	*realRunCase
	b     *testing.B
	moves string // --move-cpus
	url   string
	dir   string
	bus   *bus.Bus

	mu                   sync.Mutex
	seconds              map[string]float64
	kept, named, windows int
}

func newRealRun(b *testing.B, c *realRunCase, moves string) *realRun {
	return &realRun{realRunCase: c, b: b, moves: moves, dir: b.TempDir(), seconds: map[string]float64{}}
}

// run starts courier all, runs the trainings, and stops it.
func (r *realRun) run() {
	args := append([]string{
		"all", "--data", filepath.Join(r.dir, "data"), "--nats-port", "0", "--http-port", "0", "--engine", "off",
		"--move-cpus", r.moves,
	}, r.flags...)
	all := exec.CommandContext(r.b.Context(), program(r.b), args...)
	out, err := all.StdoutPipe()
	if err != nil {
		r.b.Fatal(err)
	}
	if err = all.Start(); err != nil {
		r.b.Fatal(err)
	}
	defer func() {
		if err := all.Process.Signal(syscall.SIGTERM); err != nil {
			r.b.Error(err)
		}
		_ = all.Wait() // it was stopped
	}()
	for lines := bufio.NewScanner(out); r.url == "" && lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), " "); name == "nats" {
			r.url = strings.TrimSpace(value)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until the process ends
	r.bus = connect(r.b, r.url)
	for i := range r.tried {
		r.train(&r.tried[i], r.tried[i].id+"-tried")
	}
	if r.isKnown {
		r.awaitPredictions()
	}
	begin := time.Now()
	var trainings sync.WaitGroup
	for i := range r.jobs {
		j := &r.jobs[i]
		trainings.Go(func() {
			select {
			case <-time.After(time.Until(begin.Add(j.arrival))):
				r.train(j, j.id)
			case <-r.b.Context().Done():
			}
		})
	}
	trainings.Wait()
}

func (r *realRun) model(j *realJob) string {
	if r.isKnown {
		return "digits"
	}
	return j.id
}

// awaitPredictions waits until the trainer has learned from the trainings that were tried.
func (r *realRun) awaitPredictions() {
	j := &r.jobs[0]
	batch, _ := strconv.Atoi(j.batch)
	ask := schemas.JobRequest{
		Model: r.model(j), CPUs: schemas.CPUs{1, 2}, BatchSizes: []int{batch}, Epochs: j.epochs,
	}
	for range time.Tick(time.Second) {
		var a schemas.Advice
		err := r.ask(schemas.SubjectJobPredict, &ask, &a)
		isUnknown := func(alt schemas.Alternative) bool { return alt.PredictedSeconds == nil || alt.Extrapolated }
		if err == nil && len(a.Alternatives) == 2 && !slices.ContainsFunc(a.Alternatives, isUnknown) {
			return
		}
		if r.b.Context().Err() != nil {
			r.b.Fatal("the trainer learned nothing")
		}
	}
}

// train runs a training by courier run.
func (r *realRun) train(j *realJob, id string) {
	args := []string{
		"run", "--nats-url", r.url, "--id", id, "--model", r.model(j), "--epochs", strconv.Itoa(j.epochs),
		"--batch-sizes", j.batch, "--cpus", cmp.Or(j.cpus, "1,2"),
	}
	if j.cpus == "" {
		args = append(args, "--elastic", "--resize", "control")
		if r.slo != "" {
			args = append(args, "--slo", r.slo)
		}
	}
	args = append(args, "--")
	for _, arg := range j.command {
		args = append(args, strings.ReplaceAll(arg, "{program}", program(r.b)))
	}
	run := exec.CommandContext(r.b.Context(), program(r.b), args...)
	begin := time.Now()
	ended := make(chan struct{})
	var text []byte
	var err error
	go func() {
		defer close(ended)
		text, err = run.CombinedOutput()
	}()
	for isRunning := true; isRunning; {
		select {
		case <-ended:
			isRunning = false
		case <-time.After(3 * time.Second):
			r.look(j, id)
		}
	}
	took := time.Since(begin)
	if err != nil {
		r.b.Errorf("%s: %v\n%s", id, err, text)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "courier:") {
			r.b.Logf("%s, moves %s, %s", id, r.moves, strings.TrimSpace(line))
		}
	}
	slo, _ := time.ParseDuration(r.slo)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seconds[id] = took.Seconds()
	if j.cpus == "" && took <= slo {
		r.kept++
	}
}

// ask sends a request. On a busy machine a connection is lost now and then, and with it the reply.
func (r *realRun) ask(subject string, request, reply any) error {
	ctx, cancel := context.WithTimeout(r.b.Context(), 10*time.Second)
	defer cancel()
	return r.bus.Request(ctx, subject, request, reply)
}

// look compares the bottleneck of a running training with the true one. A training without a stable window
// has none.
func (r *realRun) look(j *realJob, id string) {
	var s schemas.JobStatus
	err := r.ask(schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: id}, &s)
	want, isKnown := j.bottlenecks[s.CPUs]
	if err != nil || s.Bottleneck == "" || !isKnown {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows++; s.Bottleneck == want {
		r.named++
	} else {
		r.b.Logf("%s with %d CPUs: %s, want %s", id, s.CPUs, s.Bottleneck, want)
	}
}
