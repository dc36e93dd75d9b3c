package figures

import (
	"math"

	"courier/policy"
	"courier/policy/quality"
)

// sharing is how a node divides its CPU among trainings. CPU that a job does not use goes to the others.
type sharing struct {
	isFair   bool            // equal shares instead of policy/quality
	interval float64         // seconds between two losses of a job, and between rounds
	options  quality.Options // of policy/quality
}

// sharingOutcome is the result of a simulation. Seconds count from the arrival of a job.
type sharingOutcome struct {
	seconds  map[string]float64 // to the end
	quality  map[string]float64 // to 90 % of the fall of the loss
	makespan float64            // the end of the last job
}

const (
	tick         = 0.05 // seconds
	backOff      = 16   // maximum factor of the interval while all jobs are completing
	qualityRatio = 0.9
)

type sharingRun struct {
	sharing
	contention float64
	running    []*sharingJob
	isChanged  bool    // a job arrived or ended since the last division
	wait       float64 // seconds between two divisions
	review     float64 // time of the next division
	outcome    sharingOutcome
}

// simulateSharing runs jobs on a node whose speed with n equal jobs is 1 / (1 + contention (n - 1)).
func simulateSharing(jobs []trainingJob, s sharing, contention float64) *sharingOutcome {
	r := &sharingRun{sharing: s, contention: contention}
	r.outcome.seconds, r.outcome.quality = map[string]float64{}, map[string]float64{}
	for now := 0.0; len(r.outcome.seconds) < len(jobs); now += tick {
		r.end(now)
		for i := range jobs {
			if j := &jobs[i]; j.arrival <= now && j.arrival > now-tick {
				r.running = append(r.running, newSharingJob(j, now))
				r.isChanged = true
			}
		}
		if len(r.running) == 0 {
			continue
		}
		if r.isChanged || now >= r.review {
			r.review = r.divide(now)
			r.isChanged = false
		}
		r.advance(now)
	}
	return &r.outcome
}

// end removes the jobs that have ended.
func (r *sharingRun) end(now float64) {
	kept := r.running[:0]
	for _, j := range r.running {
		if j.done < j.work {
			kept = append(kept, j)
			continue
		}
		r.outcome.seconds[j.name], r.outcome.makespan = now-j.arrival, now
		r.isChanged = true
	}
	r.running = kept
}

// divide sets the shares of the jobs, and returns the time of the next division. It is called at that
// time, and whenever a job arrives or ends.
func (r *sharingRun) divide(now float64) (next float64) {
	if r.isFair {
		for _, j := range r.running {
			j.share = 1 / float64(len(r.running))
		}
		return math.Inf(1)
	}
	v := &policy.View{Now: timeAt(now)}
	for _, j := range r.running {
		j.closeWindow(now)
		v.Jobs = append(v.Jobs, policy.Job{
			ID: j.name, Share: j.planned, Losses: &policy.Losses{Reports: j.reports, Largest: 1, First: 1},
		})
	}
	p := quality.New(r.options)
	shares := policy.Guard(p)
	if r.options.IsPublished {
		shares = p // without the rules above all policies
	}
	for _, m := range shares.Plan(v) {
		for _, j := range r.running {
			if j.name == m.Job {
				j.planned = m.Share
			}
		}
	}
	if r.wait = min(2*r.wait, backOff*r.interval); r.isChanged || !p.IsIdle(v) {
		r.wait = r.interval
	}
	for _, j := range r.running {
		j.share = j.planned
	}
	if r.options.IsPublished {
		limitShares(r.running)
	}
	return now + r.wait
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

// advance runs the jobs for a tick.
func (r *sharingRun) advance(now float64) {
	speed := 1 / (1 + r.contention*(effectiveJobs(r.running)-1))
	for _, j := range r.running {
		j.lossSum += j.loss() * tick
		j.used += j.share * tick
		j.done += j.share * speed * tick
		if j.done >= j.qualityWork {
			r.outcome.quality[j.name] = now + tick - j.arrival
			j.qualityWork = math.Inf(1)
		}
	}
}

// effectiveJobs returns the effective number of jobs: 1 / sum of squared shares.
func effectiveJobs(running []*sharingJob) float64 {
	sum, squares := 0.0, 0.0
	for _, j := range running {
		sum += j.share
		squares += j.share * j.share
	}
	return sum * sum / squares
}

// trainingJob is a training on the node. Its loss after a part x of its work is
// finalLoss + (1 - finalLoss) exp(-x / decay).
type trainingJob struct {
	name      string
	arrival   float64 // seconds
	work      float64 // seconds on the whole node
	finalLoss float64
	decay     float64
}

type sharingJob struct {
	*trainingJob
	// qualityWork is the work after which qualityRatio of the fall of the loss is reached; +Inf from
	// then on.
	qualityWork float64

	done    float64 // seconds of work
	share   float64 // of the node
	planned float64 // by the policy; a cap of the share with the published rule
	used    float64 // CPU seconds in the window
	lossSum float64 // loss times seconds in the window
	since   float64 // begin of the window
	reports []policy.LossReport
}

func newSharingJob(j *trainingJob, now float64) *sharingJob {
	fall := 1 - math.Exp(-1/j.decay)
	work := -math.Log(1-qualityRatio*fall) * j.decay * j.work
	return &sharingJob{trainingJob: j, qualityWork: work, since: now}
}

func (j *sharingJob) loss() float64 {
	return j.finalLoss + (1-j.finalLoss)*math.Exp(-j.done/j.work/j.decay)
}

// closeWindow ends the window at an instant, if it is not empty.
func (j *sharingJob) closeWindow(now float64) {
	if seconds := now - j.since; seconds > tick {
		r := policy.LossReport{Seconds: seconds, Loss: j.lossSum / seconds, CPURatio: j.used / seconds}
		j.reports = append(j.reports[max(0, len(j.reports)+1-quality.MaxReports):], r)
		j.since, j.lossSum, j.used = now, 0, 0
	}
}
