package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

// BenchmarkEfficiency starts three real trainings of about a minute side by side on this machine, each
// wrongly in another way, under courier all --objective efficiency, with and without its moves: "few"
// has one CPU and could use two, "idle" holds two CPUs and waits for its input, and "threads" has as
// many threads as the machine has CPUs, which wait for each other. It reports the seconds of each, the
// reduction by the moves, and how often the bottleneck of a window was the true one. COURIER_REAL
// enables it, on a machine with two CPUs that is otherwise idle; -benchtime 5x repeats it, and -v
// prints the moves.
func BenchmarkEfficiency(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	seconds := map[string][]float64{}
	var reductions []float64
	named, windows := 0, 0
	for b.Loop() {
		before, after := newWrongStarts(b, "dry-run"), newWrongStarts(b, "on")
		before.run()
		after.run()
		sum := 0.0
		for i := range wrongStarts {
			id := wrongStarts[i].id
			reduction := 1 - after.seconds[id]/before.seconds[id]
			seconds[id+"-without"] = append(seconds[id+"-without"], before.seconds[id])
			seconds[id+"-with"] = append(seconds[id+"-with"], after.seconds[id])
			seconds[id+"-reduction"] = append(seconds[id+"-reduction"], reduction)
			sum += reduction / float64(len(wrongStarts))
			b.Logf("%s: %.1f s, with moves %.1f s (%+.0f %%)",
				id, before.seconds[id], after.seconds[id], -100*reduction)
		}
		reductions = append(reductions, sum)
		named, windows = named+before.named+after.named, windows+before.windows+after.windows
	}
	for i := range wrongStarts {
		id := wrongStarts[i].id
		reportMean(b, seconds[id+"-without"], id+"-s-without")
		reportMean(b, seconds[id+"-with"], id+"-s-with")
		reportMean(b, seconds[id+"-reduction"], id+"-reduction")
	}
	reportMean(b, reductions, "mean-reduction")
	b.Logf("bottleneck named in %d of %d windows", named, windows)
	b.ReportMetric(float64(named)/float64(max(1, windows)), "named-ratio")
}

// wrongStart is a training with a wrong number of CPUs. Nothing is known about its model, so it starts with
// the most CPUs, or with those that the model has not had.
type wrongStart struct {
	id, cpus, batch string
	epochs          int
	tried           string // CPUs of an earlier run of one epoch; empty: none
	command         []string
	// bottlenecks are the true ones by number of CPUs.
	bottlenecks map[uint32]schemas.Bottleneck
}

var digitsCommand = []string{
	"{program}", "workload", "digits", "--cpus", "{cpus}", "--batch-size", "{batch}", "--epochs", "{epochs}",
}

var wrongStarts = []wrongStart{
	{
		id: "few", cpus: "1,2", batch: "128", epochs: 40, tried: "2",
		command:     append(digitsCommand[:len(digitsCommand):len(digitsCommand)], "--augment", "80"),
		bottlenecks: map[uint32]schemas.Bottleneck{1: schemas.BottleneckCPU, 2: schemas.BottleneckCPU},
	},
	{
		id: "idle", cpus: "1,2", batch: "32", epochs: 60,
		command:     []string{"sh", "-c", waitingTraining, "sh", "{program}", "{epochs}"},
		bottlenecks: map[uint32]schemas.Bottleneck{2: schemas.BottleneckSurplus},
	},
	{
		id: "threads", cpus: "1,2", batch: "4", epochs: 30,
		command:     digitsCommand,
		bottlenecks: map[uint32]schemas.Bottleneck{1: schemas.BottleneckCPU, 2: schemas.BottleneckThreads},
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

// wrongStartRun is a run of all trainings.
type wrongStartRun struct {
	b     *testing.B
	moves string // --move-cpus
	url   string
	dir   string
	bus   *bus.Bus

	mu             sync.Mutex
	seconds        map[string]float64
	named, windows int
}

func newWrongStarts(b *testing.B, moves string) *wrongStartRun {
	return &wrongStartRun{b: b, moves: moves, dir: b.TempDir(), seconds: map[string]float64{}}
}

// run starts courier all, runs the trainings, and stops it.
func (r *wrongStartRun) run() {
	all := exec.CommandContext(r.b.Context(), program(r.b), "all", "--data", filepath.Join(r.dir, "data"),
		"--nats-port", "0", "--http-port", "0", "--engine", "off", "--objective", "efficiency",
		"--move-cpus", r.moves)
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
	for i := range wrongStarts {
		if j := &wrongStarts[i]; j.tried != "" {
			tried := *j
			tried.cpus, tried.epochs = j.tried, 1
			r.train(&tried, j.id+"-tried")
		}
	}
	var trainings sync.WaitGroup
	for i := range wrongStarts {
		trainings.Go(func() { r.train(&wrongStarts[i], wrongStarts[i].id) })
	}
	trainings.Wait()
}

// train runs a training by courier run.
func (r *wrongStartRun) train(j *wrongStart, id string) {
	args := []string{
		"run", "--nats-url", r.url, "--id", id, "--model", j.id, "--cpus", j.cpus,
		"--epochs", strconv.Itoa(j.epochs), "--batch-sizes", j.batch,
	}
	if strings.Contains(j.cpus, ",") {
		args = append(args, "--elastic", "--resize", "control")
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
	took := time.Since(begin).Seconds()
	if err != nil {
		r.b.Errorf("%s: %v\n%s", id, err, text)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "courier:") {
			r.b.Logf("%s, moves %s, %s", id, r.moves, strings.TrimSpace(line))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seconds[id] = took
}

// look compares the bottleneck of a running training with the true one. A training without a stable window
// has none.
func (r *wrongStartRun) look(j *wrongStart, id string) {
	var s schemas.JobStatus
	err := r.bus.Request(r.b.Context(), schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: id}, &s)
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
