package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"text/tabwriter"

	"courier/bus"
	"courier/schemas"
)

// What courier demo --slow-machine does: the machine changes under the jobs.
const (
	slowCalm    = 15  // jobs before the first change, and after each promotion
	slowPatient = 120 // most jobs that a promotion is waited for
	slowLast    = 10  // jobs by whose times SLOs are drawn: users ask for what they have seen
	slowHardest = 0.7 // of their median is the hardest SLO
	slowEasiest = 2.2 // and so much the easiest
)

// slowPhase is what happened between two changes of the machine. Counts of jobs
// are null where it did not come to that.
type slowPhase struct {
	Machine   string     `json:"machine"`         // what was done to it
	Jobs      int        `json:"jobs"`            // run meanwhile
	Noticed   *int       `json:"noticed_jobs"`    // after which drift was noticed
	Fitted    *int       `json:"fitted_jobs"`     // after which a challenger was fitted
	Promoted  *int       `json:"promoted_jobs"`   // after which it was in use
	Drift     string     `json:"drift,omitempty"` // what was said of the drift
	Reason    string     `json:"reason,omitempty"`
	Before    slowRecord `json:"before"` // until something else was in use
	After     slowRecord `json:"after"`  // since then
	Regressor string     `json:"model_digest"`
}

// slowRecord is how promises and predictions came out.
type slowRecord struct {
	Jobs        int     `json:"jobs"`
	Promised    int     `json:"promised"`
	Kept        int     `json:"kept"`
	MedianError float64 `json:"median_error"` // |predicted / measured - 1| at submission
}

// slow lets the machine become slower and fast again, twice, and tells what came
// of it: drift, fit, promotion, and the promises before and after.
func (d *demo) slow(ctx context.Context, measured []float64) error {
	d.say("")
	d.say("3. Jobs one after the other, while the machine changes under them")
	life := d.watchLife(ctx)
	phases, err := d.phases(ctx, measured, life)
	if err = errors.Join(err, life.end()); err != nil {
		return err
	}
	return d.printSlow(phases)
}

func (d *demo) phases(
	ctx context.Context, measured []float64, life *lifeWatch,
) ([]slowPhase, error) {
	first, err := d.phase(ctx, "as it was measured", false, measured, life)
	phases := []slowPhase{first}
	for _, change := range []struct {
		name string
		do   func(context.Context) (undo func(), err error)
	}{{"a CPU hog", d.hog}, {"a cgroup limit", d.limit}} {
		if err != nil {
			return phases, err
		}
		undo, why := change.do(ctx)
		if why != nil {
			d.say("   skipped, %s: %v", change.name, why)
			continue
		}
		var with, without slowPhase
		with, err = d.phase(ctx, change.name, true, measured, life)
		undo()
		if err == nil {
			without, err = d.phase(ctx, "without it again", true, measured, life)
		}
		phases = append(phases, with, without)
	}
	return phases, err
}

// phase runs some jobs; where the machine was changed, until something else is in
// use for their times, and some more.
func (d *demo) phase(
	ctx context.Context, name string, changed bool, measured []float64, life *lifeWatch,
) (slowPhase, error) {
	d.say("   %s", name)
	p := slowPhase{Machine: name}
	seen := slices.Clone(measured)
	life.take() // what came of the last phase
	var before, after []crowdJob
	for calm := 0; calm < slowCalm; p.Jobs++ {
		usual := median(slices.Clone(seen[max(0, len(seen)-slowLast):]))
		slo := usual * (slowHardest + d.random.Float64()*(slowEasiest-slowHardest))
		j, err := d.crowdJob(ctx, slo, d.random.Uint32())
		if err != nil {
			return p, err
		}
		seen = append(seen, j.MeasuredSeconds)
		if p.Promoted != nil {
			after = append(after, j)
		} else {
			before = append(before, j)
		}
		for _, e := range life.take() {
			if said := p.note(e, p.Jobs+1); said != "" {
				d.say("      after %3d jobs: %s", p.Jobs+1, said)
			}
		}
		if !changed || p.Promoted != nil || p.Jobs >= slowPatient {
			calm++
		}
	}
	p.Before, p.After = recordOf(before), recordOf(after)
	c, _, err := d.local.bus.Champion(ctx, schemas.TargetEpochTime)
	p.Regressor = c.ModelDigest
	d.say("      %d jobs; promises kept %d of %d, times off by %.0f %%; then %d of %d, %.0f %%",
		p.Jobs, p.Before.Kept, p.Before.Promised, 100*p.Before.MedianError,
		p.After.Kept, p.After.Promised, 100*p.After.MedianError)
	return p, err
}

// note takes an event of the regressors of epoch times, and says it in words if it
// is the first of its kind.
func (p *slowPhase) note(e schemas.Event, jobs int) string {
	switch e := e.(type) {
	case *schemas.Drift:
		if p.Noticed == nil {
			p.Noticed, p.Drift = &jobs, e.Message
			return "drift: " + e.Message
		}
	case *schemas.Trained:
		if p.Fitted == nil {
			p.Fitted = &jobs
			return fmt.Sprintf("challenger %.12s, %s of %d examples", e.ModelDigest, e.Family, e.Examples)
		}
	case *schemas.Promoted:
		if p.Promoted == nil {
			p.Promoted, p.Reason = &jobs, e.Reason
			return fmt.Sprintf("in use is %.12s, %s", e.ModelDigest, e.Reason)
		}
	}
	return ""
}

func recordOf(jobs []crowdJob) slowRecord {
	r := slowRecord{Jobs: len(jobs)}
	var off []float64
	for i := range jobs {
		j := &jobs[i]
		if j.Decision == schemas.MeetsSLO {
			r.Promised++
			if j.Met {
				r.Kept++
			}
		}
		if j.PredictedSeconds != nil {
			off = append(off, math.Abs(*j.PredictedSeconds/j.MeasuredSeconds-1))
		}
	}
	if len(off) > 0 {
		r.MedianError = median(off)
	}
	return r
}

// lifeWatch collects what happens to the regressors of epoch times.
type lifeWatch struct {
	mu     sync.Mutex
	events []schemas.Event
	stop   context.CancelFunc
	ended  chan error
}

func (d *demo) watchLife(ctx context.Context) *lifeWatch {
	ctx, stop := context.WithCancel(ctx)
	l := &lifeWatch{stop: stop, ended: make(chan error, 1)}
	o := bus.FollowOptions{
		Stream:   schemas.StreamRegressor,
		Subjects: []string{schemas.RegressorSubject(schemas.TargetEpochTime, "*")},
		New:      true,
	}
	go func() {
		l.ended <- d.local.bus.Follow(ctx, o, func(r bus.Record) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, r.Event)
			return nil
		})
	}()
	return l
}

// take returns what happened since the last call.
func (l *lifeWatch) take() []schemas.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.events
	l.events = nil
	return all
}

func (l *lifeWatch) end() error {
	l.stop()
	return <-l.ended
}

func (d *demo) printSlow(phases []slowPhase) error {
	if d.c.Output == "json" {
		e := json.NewEncoder(d.w.stdout)
		e.SetIndent("", "  ")
		return e.Encode(map[string][]slowPhase{"phases": phases})
	}
	after := func(jobs *int) string {
		if jobs == nil {
			return "-"
		}
		return fmt.Sprint(*jobs)
	}
	t := tabwriter.NewWriter(d.w.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nmachine\tjobs\tnoticed\tfitted\tin use\tpromises kept\ttimes off\t"+
		"then kept\ttimes off\t")
	fmt.Fprintln(t, "\t\tafter\tafter\tafter\tbefore\tbefore\tafter\tafter\t")
	for _, p := range phases {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d of %d\t%.0f %%\t%d of %d\t%.0f %%\t\n",
			p.Machine, p.Jobs, after(p.Noticed), after(p.Fitted), after(p.Promoted),
			p.Before.Kept, p.Before.Promised, 100*p.Before.MedianError,
			p.After.Kept, p.After.Promised, 100*p.After.MedianError)
	}
	return t.Flush()
}
