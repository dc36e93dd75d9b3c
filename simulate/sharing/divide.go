package sharing

import (
	"cmp"
	"math"
	"time"

	"courier/policy"
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
	wait float64
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
	p, v := quality.New(d.Quality), viewOf(running, now)
	shares := policy.Guard(p)
	if d.Quality.IsPublished {
		shares = p // without the rules above all policies
	}
	for _, m := range shares.Plan(v) {
		for _, j := range running {
			if j.Name == m.Job {
				j.planned = m.Share
			}
		}
	}
	interval := cmp.Or(d.Interval, defaultInterval)
	if d.wait = min(2*d.wait, backOff*interval); isChanged || !p.IsIdle(v) {
		d.wait = interval
	}
	for _, j := range running {
		j.share = j.planned
	}
	if d.Quality.IsPublished {
		limitShares(running)
	}
	return now + d.wait
}

// viewOf ends the windows of jobs, and returns what the policy knows about them.
func viewOf(running []*sharingJob, now float64) *policy.View {
	v := &policy.View{Now: time.Unix(0, 0).Add(time.Duration(now * float64(time.Second)))}
	for _, j := range running {
		j.closeWindow(now)
		v.Jobs = append(v.Jobs, policy.Job{
			ID: j.Name, Share: j.planned, Losses: &policy.Losses{Reports: j.reports, Largest: 1, First: 1},
		})
	}
	return v
}

// limitShares divides the node by caps: unused CPU goes to jobs below their cap.
func limitShares(running []*sharingJob) {
	for _, j := range running {
		j.share = 0
	}
	for rest := 1.0; rest > 1e-9; {
		var open []*sharingJob
		for _, j := range running {
			if j.share < j.planned-1e-12 {
				open = append(open, j)
			}
		}
		if len(open) == 0 {
			return
		}
		each := rest / float64(len(open))
		for _, j := range open {
			more := min(each, j.planned-j.share)
			j.share += more
			rest -= more
		}
	}
}
