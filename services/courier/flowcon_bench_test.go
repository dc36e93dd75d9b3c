package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/quality"
	"courier/runner/usage"
	"courier/schemas"
)

// BenchmarkFlowCon runs three real trainings on this machine, which arrive one after the other like
// those of courier simulate figures flowcon, in about a sixth of the time. They share one CPU, because trainings
// with threads on two also wait for each other. Their cgroups have equal weights (fair), or those of
// policy/quality, planned after each loss. It reports the seconds of each training, their mean, the
// mean time to 90 % of the fall of the loss, and the makespan. COURIER_REAL enables it; -count repeats
// it.
func BenchmarkFlowCon(b *testing.B) {
	trainings := []sharedTraining{
		{"first", 0, 100, 40, "0.002", true},
		{"second", 3 * time.Second, 50, 40, "0.001", true},
		{"third", 6 * time.Second, 25, 20, "0.0001", true},
	}
	benchmarkShares(b, []float64{2, 4}, flowconThreshold, func(int) []sharedTraining { return trainings })
}

// BenchmarkFlowConRandom does the same with 5, 10 and 15 trainings at random times, in about a
// twentieth of the time of the random schedules of courier simulate figures flowcon. Each repetition of a
// benchmark with -benchtime 5x has other trainings, and they are the same for each policy.
func BenchmarkFlowConRandom(b *testing.B) {
	for _, n := range []int{5, 10, 15} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			benchmarkShares(b, []float64{2}, randomThreshold, func(repetition int) []sharedTraining {
				return randomTrainings(n, uint64(repetition))
			})
		})
	}
}

// benchmarkShares compares equal weights with floors of policy/quality.
func benchmarkShares(b *testing.B, floors []float64, threshold float64, draw func(repetition int) []sharedTraining) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	run := func(name string, o *quality.Options) {
		b.Run(name, func(b *testing.B) {
			repetition := 0
			for b.Loop() {
				repetition++
				(&sharedMachine{b: b, options: o}).play(draw(repetition))
			}
		})
	}
	run("fair", nil)
	for _, floor := range floors {
		run(fmt.Sprint("beta=", floor), &quality.Options{Floor: floor, Threshold: threshold})
	}
}

// sharedTraining is a training on the machine.
type sharedTraining struct {
	name           string
	arrival        time.Duration
	epochs, copies int
	rate           string
	isReported     bool // its seconds are a metric
}

// randomTrainings draws trainings that arrive over a second for each of them.
func randomTrainings(n int, seed uint64) []sharedTraining {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	all := make([]sharedTraining, n)
	for i := range all {
		all[i] = sharedTraining{
			name:    fmt.Sprint("job-", i),
			arrival: time.Duration(random.Float64() * float64(n) * float64(time.Second)),
			epochs:  []int{5, 10, 20, 40}[random.IntN(4)],
			copies:  20,
			rate:    []string{"0.002", "0.001", "0.0003", "0.0001"}[random.IntN(4)],
		}
	}
	return all
}

// flowconThreshold is the default threshold, for trainings in about a sixth of the time.
const flowconThreshold = 6 * 0.01

// randomThreshold is the default threshold, for trainings in about a twentieth of the time.
const randomThreshold = 20 * 0.01

// sharedMachine runs trainings whose weights a policy plans.
type sharedMachine struct {
	b       *testing.B
	options *quality.Options // nil: equal weights

	mu         sync.Mutex
	jobs       map[string]*realTraining
	nearlyDone []float64 // seconds of each training until 90 % of the fall of its loss
}

// realTraining is a running training with its last two losses.
type realTraining struct {
	cgroup *usage.Cgroup
	pid    int
	used   usage.Totals
	share  float64
	losses policy.Losses
	lastAt time.Time
}

// play runs trainings. Each reports its loss after each of its epochs.
func (m *sharedMachine) play(trainings []sharedTraining) {
	m.jobs, m.nearlyDone = map[string]*realTraining{}, nil
	begin := time.Now()
	var all sync.WaitGroup
	seconds := make([]float64, len(trainings))
	for i, j := range trainings {
		all.Go(func() {
			select {
			case <-time.After(time.Until(begin.Add(j.arrival))):
			case <-m.b.Context().Done():
				return
			}
			seconds[i] = m.train(j.name, "workload", "digits", "--cpus", "1", "--batch-size", "32",
				"--epochs", strconv.Itoa(j.epochs), "--augment", strconv.Itoa(j.copies),
				"--learning-rate", j.rate, "--seed", strconv.Itoa(i+1))
			if j.isReported {
				m.b.ReportMetric(seconds[i], "s-"+j.name)
			}
		})
	}
	all.Wait()
	// A metric of the last repetition would hide the others.
	m.b.Logf("mean %.2f s, to 90 %% of the fall of the loss %.2f s, makespan %.2f s",
		meanOf(seconds), meanOf(m.nearlyDone), time.Since(begin).Seconds())
	m.b.ReportMetric(meanOf(seconds), "s-mean")
	m.b.ReportMetric(meanOf(m.nearlyDone), "s-to-90%")
	m.b.ReportMetric(time.Since(begin).Seconds(), "s-makespan")
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// train runs a training, and returns its seconds.
func (m *sharedMachine) train(name string, args ...string) float64 {
	c, err := usage.NewCgroup("flowcon-"+name, true)
	if err != nil {
		m.b.Error(err)
		return 0
	}
	cmd := exec.CommandContext(m.b.Context(), "taskset", append([]string{"-c", "0", program(m.b)}, args...)...)
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
	var losses, at []float64
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e struct {
			Loss *float64 `json:"loss"`
		}
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Loss != nil {
			losses, at = append(losses, *e.Loss), append(at, time.Since(begin).Seconds())
			m.report(name, *e.Loss, time.Now())
		}
	}
	if err := cmd.Wait(); err != nil {
		m.b.Errorf("%s: %v", name, err)
	}
	seconds := time.Since(begin).Seconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(losses); n > 0 {
		low := slices.Min(losses)
		k := slices.IndexFunc(losses, func(l float64) bool { return losses[0]-l >= 0.9*(losses[0]-low) })
		m.nearlyDone = append(m.nearlyDone, at[k])
	}
	delete(m.jobs, name)
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
	l := &j.losses
	if l.Largest = max(l.Largest, loss); len(l.Reports) == 0 {
		l.First = loss
	}
	r := policy.LossReport{Seconds: at.Sub(j.lastAt).Seconds(), Loss: loss}
	if cpu := e.JobCPUSeconds; cpu != nil {
		r.CPURatio = *cpu / r.Seconds / float64(machineCPUs)
	}
	l.Reports = append(l.Reports, r)
	j.lastAt, j.used = at, used
	m.plan()
}

// machineCPUs is the number of CPUs that the trainings share.
const machineCPUs = 1

// plan sets the weights of all trainings.
func (m *sharedMachine) plan() {
	v := &policy.View{Now: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[name]
		v.Jobs = append(v.Jobs, policy.Job{ID: name, Share: j.share, Losses: &j.losses})
	}
	if m.options != nil {
		for _, move := range policy.Guard(quality.New(*m.options)).Plan(v) {
			m.jobs[move.Job].share = move.Share
		}
	}
	for i := range v.Jobs {
		j, weight := m.jobs[v.Jobs[i].ID], 1.0
		if m.options != nil {
			weight = j.share * float64(len(v.Jobs))
		}
		if err := j.cgroup.SetCPUs(weight, false); err != nil {
			m.b.Error(err)
		}
	}
}
