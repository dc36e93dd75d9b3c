package sharing

import (
	"cmp"
	"math"

	"courier/policy/quality"
)

// Sharing is how a node divides its CPU. The zero value is policy/quality with its defaults.
type Sharing struct {
	IsFair   bool            // equal shares instead of policy/quality
	Interval float64         // seconds between two losses of a job, and between rounds; 0: 20
	Quality  quality.Options // of policy/quality
}

const (
	defaultInterval = 20.0 // seconds
	backOff         = 16   // maximum factor of the interval while all jobs are completing
)

type division struct {
	Sharing
	wait   float64
	states map[string]quality.JobState
}

// divide sets the shares of the jobs, and returns the time of the next division. It is called at that
// time, and whenever a job arrives or ends.
func (d *division) divide(running []*sharingJob, now float64, isChanged bool) (next float64) {
	if d.IsFair {
		for _, j := range running {
			j.share = 1 / float64(len(running))
		}
		return math.Inf(1)
	}
	var isIdle bool
	d.states, isIdle = quality.Plan(d.states, closeWindows(running, now), d.Quality)
	interval := cmp.Or(d.Interval, defaultInterval)
	if d.wait = min(2*d.wait, backOff*interval); !isIdle || isChanged {
		d.wait = interval
	}
	if d.Quality.IsPublished {
		d.cap(running)
		return now + d.wait
	}
	for _, j := range running {
		j.share = d.states[j.Name].Share
	}
	return now + d.wait
}

// closeWindows ends the windows of jobs, and returns those of the jobs that have two.
func closeWindows(running []*sharingJob, now float64) map[string]*quality.Window {
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
	return windows
}

// cap divides the node by caps: unused CPU goes to jobs below their cap.
func (d *division) cap(running []*sharingJob) {
	for _, j := range running {
		j.share = 0
	}
	for rest := 1.0; rest > 1e-9; {
		var open []*sharingJob
		for _, j := range running {
			if j.share < d.states[j.Name].Share-1e-12 {
				open = append(open, j)
			}
		}
		if len(open) == 0 {
			return
		}
		each := rest / float64(len(open))
		for _, j := range open {
			more := min(each, d.states[j.Name].Share-j.share)
			j.share += more
			rest -= more
		}
	}
}
