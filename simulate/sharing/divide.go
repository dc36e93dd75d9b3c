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

func (s Sharing) divider() divider {
	if s.IsFair {
		return fairDivider{}
	}
	interval := cmp.Or(s.Interval, defaultInterval)
	return &qualityDivider{o: s.Quality, interval: interval, wait: interval}
}

type fairDivider struct{}

func (fairDivider) divide(running []*sharingJob, _ float64, _ bool) float64 {
	for _, j := range running {
		j.share = 1 / float64(len(running))
	}
	return math.Inf(1)
}

// qualityDivider divides by policy/quality.
type qualityDivider struct {
	o              quality.Options
	interval, wait float64
	states         map[string]quality.JobState
}

func (d *qualityDivider) divide(running []*sharingJob, now float64, isChanged bool) float64 {
	var isIdle bool
	d.states, isIdle = quality.Plan(d.states, closeWindows(running, now), d.o)
	if d.wait = min(2*d.wait, backOff*d.interval); !isIdle || isChanged {
		d.wait = d.interval
	}
	if d.o.IsPublished {
		d.cap(running)
	} else {
		for _, j := range running {
			j.share = d.states[j.Name].Share
		}
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
func (d *qualityDivider) cap(running []*sharingJob) {
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
