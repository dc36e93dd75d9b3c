package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/policy/quality"
	"courier/runner/usage"
	"courier/schemas"
)

// BenchmarkFlowCon runs three real trainings on this machine, which arrive one after the other like
// those of courier simulate flowcon, in about a sixth of the time. They share one CPU, because trainings
// with threads on two also wait for each other. Their cgroups have equal weights (fair), or those of
// policy/quality, planned after each loss. It reports the seconds of each
// training and the makespan. COURIER_REAL enables it; -count repeats it.
func BenchmarkFlowCon(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	for _, c := range []struct {
		name    string
		options *quality.Options
	}{
		{"fair", nil},
		{"beta=2", &quality.Options{Floor: 2, Threshold: flowconThreshold}},
		{"beta=4", &quality.Options{Floor: 4, Threshold: flowconThreshold}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				(&sharedMachine{b: b, options: c.options}).play()
			}
		})
	}
}

// flowconThreshold is the default threshold, for trainings in about a sixth of the time.
const flowconThreshold = 6 * 0.01

// sharedMachine runs trainings whose weights a policy plans.
type sharedMachine struct {
	b       *testing.B
	options *quality.Options // nil: equal weights

	mu     sync.Mutex
	jobs   map[string]*realTraining
	states map[string]quality.JobState
}

// realTraining is a running training with its last two losses.
type realTraining struct {
	cgroup  *usage.Cgroup
	pid     int
	used    usage.Totals
	largest float64
	last    float64
	lastAt  time.Time
	window  *quality.Window
}

// play runs the three trainings. Each reports its loss after each of its epochs; later ones are
// shorter, and the loss of the last one falls longest.
func (m *sharedMachine) play() {
	m.jobs, m.states = map[string]*realTraining{}, map[string]quality.JobState{}
	begin := time.Now()
	var all sync.WaitGroup
	for i, j := range []struct {
		name           string
		arrival        time.Duration
		epochs, copies int
		rate           string
	}{
		{"first", 0, 100, 40, "0.002"},
		{"second", 3 * time.Second, 50, 40, "0.001"},
		{"third", 6 * time.Second, 25, 20, "0.0001"},
	} {
		all.Go(func() {
			select {
			case <-time.After(time.Until(begin.Add(j.arrival))):
			case <-m.b.Context().Done():
				return
			}
			seconds := m.train(j.name, "workload", "digits", "--cpus", "1", "--batch-size", "32",
				"--epochs", strconv.Itoa(j.epochs), "--augment", strconv.Itoa(j.copies),
				"--learning-rate", j.rate, "--seed", strconv.Itoa(i+1))
			m.b.ReportMetric(seconds, "s-"+j.name)
		})
	}
	all.Wait()
	m.b.ReportMetric(time.Since(begin).Seconds(), "s-makespan")
}

// train runs a training, and returns its seconds.
func (m *sharedMachine) train(name string, args ...string) float64 {
	program, err := os.Executable()
	if err != nil {
		m.b.Error(err)
		return 0
	}
	c, err := usage.NewSharingCgroup("flowcon-" + name)
	if err != nil {
		m.b.Error(err)
		return 0
	}
	cmd := exec.CommandContext(m.b.Context(), "taskset", append([]string{"-c", "0", program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.b.Error(err)
		return 0
	}
	begin := time.Now()
	if err := c.Start(cmd); err != nil {
		m.b.Error(err)
		return 0
	}
	m.add(name, c, cmd.Process.Pid, begin)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e struct {
			Loss *float64 `json:"loss"`
		}
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Loss != nil {
			m.report(name, *e.Loss, time.Now())
		}
	}
	if err := cmd.Wait(); err != nil {
		m.b.Errorf("%s: %v", name, err)
	}
	seconds := time.Since(begin).Seconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, name)
	delete(m.states, name)
	m.plan()
	if err := c.Remove(); err != nil {
		m.b.Error(err)
	}
	return seconds
}

func (m *sharedMachine) add(name string, c *usage.Cgroup, pid int, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[name] = &realTraining{cgroup: c, pid: pid, used: usage.Read(pid, c), lastAt: at}
	m.plan()
}

// report takes the loss of an epoch. A window lasts from one loss to the next.
func (m *sharedMachine) report(name string, loss float64, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[name]
	var e schemas.Epoch
	used := usage.Read(j.pid, j.cgroup)
	used.Since(j.used).Fill(&e, 1)
	j.largest = max(j.largest, loss)
	if cpu := e.JobCPUSeconds; j.last > 0 && cpu != nil {
		seconds := at.Sub(j.lastAt).Seconds()
		j.window = &quality.Window{
			Seconds: seconds, Before: j.last / j.largest, After: loss / j.largest,
			CPURatio: *cpu / seconds / float64(machineCPUs),
		}
	}
	j.last, j.lastAt, j.used = loss, at, used
	m.plan()
}

// machineCPUs is the number of CPUs that the trainings share.
const machineCPUs = 1

// plan sets the weights of all trainings.
func (m *sharedMachine) plan() {
	shares := map[string]float64{}
	windows := map[string]*quality.Window{}
	for name, j := range m.jobs {
		shares[name], windows[name] = 1/float64(len(m.jobs)), j.window
	}
	if m.options != nil && len(m.jobs) > 0 {
		m.states, _ = quality.Plan(m.states, windows, *m.options)
		for name, s := range m.states {
			shares[name] = s.Share
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		weight := shares[name] * float64(len(shares))
		if err := m.jobs[name].cgroup.SetWeight(weight); err != nil {
			m.b.Error(err)
		}
	}
}
