// Package flowcon simulates one node that divides its CPU by policy/quality, and compares the
// completion times with fair sharing.
package flowcon

import (
	"cmp"
	"math"

	"courier/policy/quality"
)

// TrainingJob is a training on the node. Its loss after a part x of its work is
// FinalLoss + (1 - FinalLoss) exp(-x / Decay).
type TrainingJob struct {
	Name      string
	Arrival   float64 // seconds
	Work      float64 // seconds on the whole node
	FinalLoss float64
	Decay     float64
}

// PaperJobs returns the fixed schedule of three jobs.
func PaperJobs() []TrainingJob {
	return []TrainingJob{
		{"first", 0, 240, 0.1, 0.08}, {"second", 40, 120, 0.1, 0.12}, {"third", 80, 30, 0.05, 0.35},
	}
}

// Sharing is how the node divides its CPU.
type Sharing struct {
	IsFair     bool            // equal shares, without a policy
	Interval   float64         // seconds between two losses of a job, and between rounds; 0: 20
	Quality    quality.Options // the policy
	Contention float64         // slowdown by n equal jobs: 1 + Contention (n - 1)
}

const (
	tick            = 0.05 // seconds
	defaultInterval = 20.0 // seconds
	backOff         = 16   // maximum factor of the interval while all jobs are completing
)

// sharingJob is the state of a job in the simulation.
type sharingJob struct {
	*TrainingJob
	done     float64 // seconds of work
	share    float64 // CPU in the current tick
	used     float64 // CPU seconds in the window
	lossSum  float64 // loss times seconds in the window
	since    float64 // begin of the window
	windows  int     // complete windows
	last     float64 // mean loss of the last window
	previous float64 // mean loss of the window before
	seconds  float64 // duration of the last window
	cpuRatio float64 // in the last window
}

func (j *sharingJob) loss() float64 {
	return j.FinalLoss + (1-j.FinalLoss)*math.Exp(-j.done/j.Work/j.Decay)
}

// closeWindow ends the window at an instant, if it is not empty.
func (j *sharingJob) closeWindow(now float64) {
	if seconds := now - j.since; seconds > tick {
		j.previous, j.last = j.last, j.lossSum/seconds
		j.seconds, j.cpuRatio = seconds, j.used/seconds
		j.windows++
		j.since, j.lossSum, j.used = now, 0, 0
	}
}

// Simulate returns the completion time of each job, from its arrival, and the end of the last one.
func Simulate(jobs []TrainingJob, s Sharing) (seconds map[string]float64, makespan float64) {
	seconds = map[string]float64{}
	var running []*sharingJob
	states := map[string]quality.JobState{}
	interval := cmp.Or(s.Interval, defaultInterval)
	next, wait := 0.0, interval
	for now := 0.0; len(seconds) < len(jobs); now += tick {
		isChanged := false
		for i := range jobs {
			if j := &jobs[i]; j.Arrival <= now && j.Arrival > now-tick {
				running = append(running, &sharingJob{TrainingJob: j, since: now})
				isChanged = true
			}
		}
		kept := running[:0]
		for _, j := range running {
			if j.done < j.Work {
				kept = append(kept, j)
				continue
			}
			seconds[j.Name], makespan = now-j.Arrival, now
			delete(states, j.Name)
			isChanged = true
		}
		running = kept
		if len(running) == 0 {
			continue
		}
		if !s.IsFair && (isChanged || now >= next) {
			var isIdle bool
			states, isIdle = plan(running, states, s.Quality, now)
			if wait = min(2*wait, backOff*interval); !isIdle || isChanged {
				wait = interval
			}
			next = now + wait
		}
		divide(running, states, s)
		speed := 1 / (1 + s.Contention*(effective(running)-1))
		for _, j := range running {
			j.lossSum += j.loss() * tick
			j.used += j.share * tick
			j.done += j.share * speed * tick
		}
	}
	return seconds, makespan
}

// plan runs a round of the policy.
func plan(
	running []*sharingJob, states map[string]quality.JobState, o quality.Options, now float64,
) (map[string]quality.JobState, bool) {
	windows := map[string]*quality.Window{}
	for _, j := range running {
		j.closeWindow(now)
		windows[j.Name] = nil
		if j.windows >= 2 {
			windows[j.Name] = &quality.Window{
				Seconds: j.seconds, Before: j.previous, After: j.last, CPURatio: j.cpuRatio,
			}
		}
	}
	return quality.Plan(states, windows, o)
}

// divide sets the shares of the jobs. Shares of the published policy are caps: unused CPU goes to
// jobs below their cap.
func divide(running []*sharingJob, states map[string]quality.JobState, s Sharing) {
	n := float64(len(running))
	if s.IsFair || !s.Quality.IsPublished {
		for _, j := range running {
			if j.share = 1 / n; !s.IsFair {
				j.share = states[j.Name].Share
			}
		}
		return
	}
	for _, j := range running {
		j.share = 0
	}
	for rest := 1.0; rest > 1e-9; {
		var open []*sharingJob
		for _, j := range running {
			if j.share < states[j.Name].Share-1e-12 {
				open = append(open, j)
			}
		}
		if len(open) == 0 {
			return
		}
		each := rest / float64(len(open))
		for _, j := range open {
			more := min(each, states[j.Name].Share-j.share)
			j.share += more
			rest -= more
		}
	}
}

// effective returns the effective number of jobs: 1 / sum of squared shares.
func effective(running []*sharingJob) float64 {
	sum, squares := 0.0, 0.0
	for _, j := range running {
		sum += j.share
	}
	for _, j := range running {
		part := j.share / sum
		squares += part * part
	}
	return 1 / squares
}
