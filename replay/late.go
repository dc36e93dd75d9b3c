package replay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
	"courier/trainer"
)

// LateJobs replays the last month of the log by the times of the jobs, as imported jobs have them.
// For each job with an SLO or a time limit it decides with regressors that were fitted on the runs
// that had ended, at least once a day and whenever there are a tenth more of them. A referee fitted
// on the whole log predicts the outcome of another batch size, scaled by how much longer the job ran
// than predicted.
func (l *Log) LateJobs(ctx context.Context, confidence float64) (*LateJobs, error) {
	events := l.byTime()
	if len(events) == 0 {
		return nil, errors.New("the log has no jobs")
	}
	all := trainer.NewPast()
	for i, e := range events {
		all.Add(e, uint64(i+1))
	}
	referee, err := fitAll(ctx, all)
	if err != nil {
		return nil, err
	}

	until := events[len(events)-1].Stamped().At
	r := &LateJobs{
		From: until.AddDate(0, -1, 0), Until: until, Confidence: confidence, Rows: []LateJob{},
	}
	jobs := coursesOf(events)
	past := &pastRuns{cluster: cluster.New(), past: trainer.NewPast(), sizes: map[string][]int{}}
	var loss mean
	for i, e := range events {
		at := e.Stamped().At
		if s, ok := e.(*schemas.Started); ok && !at.Before(r.From) {
			j := jobs[runIdentity{s.JobID, s.Run}]
			if j != nil && j.judged && j.allowed > 0 {
				if err := past.refit(ctx, at); err != nil {
					return nil, err
				}
				question := decide.Ask(past.cluster, j.request(past.sizes[modelOf(s)], confidence), at)
				r.judge(j, decide.Decide(question, past.fitted, at),
					decide.Decide(question, referee, at), &loss)
			}
		}
		past.add(e, uint64(i+1))
	}
	r.AccuracyLoss = loss.value()
	return r, nil
}

// pastRuns are the runs before a moment, and the regressors that were fitted on them.
type pastRuns struct {
	cluster *cluster.Cluster
	past    *trainer.Past
	sizes   map[string][]int // batch sizes of finished runs by model
	ended   int              // finished runs

	isFitted   bool
	fitted     decide.Regressors
	fittedOn   time.Time // the day of the last fit
	fittedWith int       // finished runs of the last fit
}

func (p *pastRuns) add(e schemas.Event, sequence uint64) {
	p.cluster.Apply(e, sequence, e.Stamped().At)
	p.past.Add(e, sequence)
	end, ok := e.(*schemas.Ended)
	if !ok || end.Outcome != schemas.EventFinished {
		return
	}
	p.ended++
	level := schemas.ModelLevel(end.Model, end.Dataset)
	if size := int(end.BatchSize); !slices.Contains(p.sizes[level], size) {
		p.sizes[level] = append(p.sizes[level], size)
	}
}

// refit fits the regressors again if a run ended since the last fit, and the day is over or there
// are a tenth more runs.
func (p *pastRuns) refit(ctx context.Context, at time.Time) (err error) {
	day := at.Truncate(24 * time.Hour)
	isDue := !day.Equal(p.fittedOn) || 10*p.ended > 11*p.fittedWith
	if p.isFitted && (p.ended <= p.fittedWith || !isDue) {
		return nil
	}
	p.fitted, err = fitAll(ctx, p.past)
	p.isFitted, p.fittedOn, p.fittedWith = true, day, p.ended
	return err
}

// fitAll fits regressors on the runs so far; without enough runs the set is empty.
func fitAll(ctx context.Context, past *trainer.Past) (all decide.Regressors, err error) {
	for _, target := range schemas.Targets() {
		files, err := trainer.Fit(ctx, target, past.Examples(target), nil, trainer.Options{})
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if err != nil {
			continue // There are too few examples.
		}
		r, err := decide.LoadRegressor(files.Model, files.Manifest)
		if err != nil {
			return all, err
		}
		all, _ = all.With(target, r)
	}
	return all, nil
}

// byTime returns the events of jobs in the order of their own times.
func (l *Log) byTime() []schemas.Event {
	var events []schemas.Event
	for i := range l.Records {
		if l.Records[i].ofJobs() {
			events = append(events, l.Records[i].Event)
		}
	}
	slices.SortStableFunc(events, func(a, b schemas.Event) int {
		return a.Stamped().At.Compare(b.Stamped().At)
	})
	return events
}

// jobCourse is a job of the log with its whole course.
type jobCourse struct {
	started *schemas.Started
	seconds float64 // from the start to the end
	allowed float64 // seconds from the start to the deadline or the time limit; 0: none
	late    bool
	judged  bool // it finished, or was late
}

func coursesOf(events []schemas.Event) map[runIdentity]*jobCourse {
	jobs, requests := map[runIdentity]*jobCourse{}, map[string]*schemas.Submitted{}
	for _, e := range events {
		switch e := e.(type) {
		case *schemas.Submitted:
			requests[e.JobID] = e
		case *schemas.Started:
			jobs[runIdentity{e.JobID, e.Run}] = &jobCourse{started: e}
		case *schemas.Ended:
			if j := jobs[runIdentity{e.JobID, e.Run}]; j != nil {
				j.end(e, requests[e.JobID])
			}
		}
	}
	return jobs
}

// end sets how long the run took, how long it was allowed to take, and whether it was late.
func (j *jobCourse) end(e *schemas.Ended, q *schemas.Submitted) {
	j.seconds = cmp.Or(e.DurationSeconds, e.At.Sub(j.started.At).Seconds())
	j.allowed = j.started.LimitSeconds
	if q != nil && q.Request.SLO > 0 {
		left := q.At.Add(time.Duration(q.Request.SLO)).Sub(j.started.At).Seconds()
		if j.allowed == 0 || left < j.allowed {
			j.allowed = max(left, 0)
		}
	}
	// A batch system ends a job some seconds after its limit, never before it.
	j.late = j.seconds >= j.allowed && (e.Outcome == schemas.EventFinished ||
		e.Outcome == schemas.EventFailed && j.started.LimitSeconds > 0)
	j.judged = j.late || e.Outcome == schemas.EventFinished
}

func modelOf(s *schemas.Started) string { return schemas.ModelLevel(s.Model, s.Dataset) }

// request returns the request of a job with a choice of the batch sizes that had run before.
func (j *jobCourse) request(sizes []int, confidence float64) schemas.JobRequest {
	s := j.started
	batches := append(slices.Clone(sizes), int(s.BatchSize))
	slices.Sort(batches)
	batches = slices.Compact(batches)
	return schemas.JobRequest{
		Model:      s.Model,
		Dataset:    s.Dataset,
		Epochs:     int(s.Epochs),
		CPUs:       schemas.CPUs{int(s.CPUs)},
		Workers:    schemas.Workers{int(max(1, s.Workers))},
		BatchSizes: batches[:min(len(batches), schemas.MaxCandidates)],
		Nodes:      s.Nodes,
		SLO:        schemas.Duration(j.allowed * float64(time.Second)),
		Confidence: confidence,
	}.WithDefaults()
}

// scaled returns the predicted seconds of an alternative, scaled by the measured and the predicted
// time of the job as it ran: both meet the same neighbours. A job that was stopped ran for at least
// its time. Nil: unknown.
func (j *jobCourse) scaled(own, chosen *schemas.Alternative) *float64 {
	if chosen == nil || chosen.PredictedSeconds == nil {
		return nil
	}
	seconds := *chosen.PredictedSeconds
	if own != nil && own.PredictedSeconds != nil && *own.PredictedSeconds > 0 {
		ratio := j.seconds / *own.PredictedSeconds
		if ratio > 1 || !j.late {
			seconds *= ratio
		}
	}
	return &seconds
}
