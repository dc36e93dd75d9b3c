package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/trainer"
)

// LateJobs counts the late jobs of the last month that would have been in time if Courier had chosen
// their batch size from the runs that had ended before them.
type LateJobs struct {
	From       time.Time `json:"from"`
	Until      time.Time `json:"until"`
	Confidence float64   `json:"confidence"`
	Jobs       int       `json:"jobs"` // with an SLO or a time limit, that finished or were late
	Late       int       `json:"late"`
	// Late jobs by what Courier would have done; the five numbers sum to Late.
	InTime    int `json:"in_time"`    // with the batch size that Courier promises
	StillLate int `json:"still_late"` // also with that batch size
	Refused   int `json:"refused"`    // no batch size was promised: known before the start
	Unknown   int `json:"unknown"`    // too few runs of the model before
	Unjudged  int `json:"unjudged"`   // the outcome of the promised batch size cannot be predicted
	// MadeLate counts jobs that were in time, and late with the batch size that Courier promises.
	MadeLate int `json:"made_late"`
	// AccuracyLoss is the mean predicted loss of accuracy of the jobs of InTime; null: unknown.
	AccuracyLoss *float64  `json:"accuracy_loss"`
	Rows         []LateJob `json:"late_jobs"` // the last maxLateRows
}

// LateJob is a job that was late.
type LateJob struct {
	JobID            string           `json:"job_id"`
	Model            string           `json:"model"`
	At               time.Time        `json:"at"` // start
	AllowedSeconds   float64          `json:"allowed_seconds"`
	BatchSize        uint32           `json:"batch_size"`
	Decision         schemas.Decision `json:"decision"`
	AdvisedBatchSize uint32           `json:"advised_batch_size"`
	PredictedSeconds *float64         `json:"predicted_seconds"` // by the referee; null: unknown
	Verdict          string           `json:"verdict"`
}

const maxLateRows = 100

// Verdicts on a late job.
const (
	verdictInTime    = "would have been in time"
	verdictStillLate = "late with this batch size as well"
	verdictRefused   = "no batch size is in time"
	verdictUnknown   = "too few runs of the model before"
	verdictUnjudged  = "the outcome cannot be predicted"
)

// jobCourse is a job of the log with its whole course.
type jobCourse struct {
	started *schemas.Started
	seconds float64 // from the start to the end
	allowed float64 // seconds from the start to the deadline or the time limit; 0: none
	late    bool
	judged  bool // it finished, or was late
}

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
	jobs := coursesOf(events)
	until := events[len(events)-1].Stamped().At
	r := &LateJobs{
		From: until.AddDate(0, -1, 0), Until: until, Confidence: confidence, Rows: []LateJob{},
	}
	all := trainer.NewPast()
	for i, e := range events {
		all.Add(e, uint64(i+1))
	}
	referee, err := fitAll(ctx, all)
	if err != nil {
		return nil, err
	}

	cluster, past := advisor.NewCluster(), trainer.NewPast()
	sizes := map[string]map[int]bool{} // batch sizes of finished runs by model
	var fitted regressorSet
	var fittedOn time.Time // the day
	ended, fittedWith := 0, 0
	var loss runningMean
	for i, e := range events {
		at := e.Stamped().At
		if s, ok := e.(*schemas.Started); ok && !at.Before(r.From) {
			j := jobs[runIdentity{s.JobID, s.Run}]
			if j != nil && j.judged && j.allowed > 0 {
				day := at.Truncate(24 * time.Hour)
				isDue := !day.Equal(fittedOn) || 10*ended > 11*fittedWith
				if fitted == nil || ended > fittedWith && isDue {
					if fitted, err = fitAll(ctx, past); err != nil {
						return nil, err
					}
					fittedOn, fittedWith = day, ended
				}
				q := j.request(sizes[modelOf(s)], confidence)
				question := cluster.Ask(q, at)
				r.judge(j, advisor.Decide(question, fitted.advisor(), at),
					advisor.Decide(question, referee.advisor(), at), &loss)
			}
		}
		cluster.Apply(e, uint64(i+1), at)
		past.Add(e, uint64(i+1))
		if end, ok := e.(*schemas.Ended); ok && end.Outcome == schemas.EventFinished {
			ended++
			level := schemas.ModelLevel(end.Model, end.Dataset)
			if sizes[level] == nil {
				sizes[level] = map[int]bool{}
			}
			sizes[level][int(end.BatchSize)] = true
		}
	}
	r.AccuracyLoss = loss.value()
	return r, nil
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

// coursesOf returns the runs that ended.
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
func (j *jobCourse) request(sizes map[int]bool, confidence float64) schemas.JobRequest {
	s := j.started
	choice := maps.Clone(sizes)
	if choice == nil {
		choice = map[int]bool{}
	}
	choice[int(s.BatchSize)] = true
	batches := slices.Sorted(maps.Keys(choice))
	return schemas.JobRequest{
		Model: s.Model, Dataset: s.Dataset, Epochs: int(s.Epochs), CPUs: schemas.CPUs{int(s.CPUs)},
		BatchSizes: batches[:min(len(batches), schemas.MaxCandidates)], Nodes: s.Nodes,
		SLO: schemas.Duration(j.allowed * float64(time.Second)), Confidence: confidence,
	}.WithDefaults()
}

// fitAll fits regressors on the runs so far; without enough runs the set is empty.
func fitAll(ctx context.Context, past *trainer.Past) (regressorSet, error) {
	set := regressorSet{}
	for _, target := range schemas.Targets() {
		v, err := fitVersion(ctx, past, target, trainer.MethodEvidence)
		if err != nil {
			return nil, err
		}
		if v != nil {
			set[target] = v
		}
	}
	return set, nil
}

// judge adds a job with the decision of its time and the predictions of the referee.
func (r *LateJobs) judge(j *jobCourse, a, referee *schemas.Advice, loss *runningMean) {
	s := j.started
	r.Jobs++
	batch := s.BatchSize
	if a.Chosen != nil {
		batch = a.Chosen.BatchSize
	}
	own, chosen := referee.Running(s.BatchSize, s.CPUs), referee.Running(batch, s.CPUs)
	predicted := j.scaled(own, chosen)
	isPromised := a.Decision == schemas.MeetsSLO
	if !j.late {
		if isPromised && predicted != nil && batch != s.BatchSize && *predicted > j.allowed {
			r.MadeLate++
		}
		return
	}
	r.Late++
	row := LateJob{
		JobID: s.JobID, Model: s.Model, At: s.At, AllowedSeconds: j.allowed, BatchSize: s.BatchSize,
		Decision: a.Decision, AdvisedBatchSize: batch, PredictedSeconds: predicted,
	}
	switch {
	case a.Decision == schemas.BestEffort:
		row.Verdict = verdictRefused
		r.Refused++
	case !isPromised:
		row.Verdict = verdictUnknown
		r.Unknown++
	case batch == s.BatchSize, predicted != nil && *predicted > j.allowed:
		row.Verdict = verdictStillLate
		r.StillLate++
	case predicted == nil:
		row.Verdict = verdictUnjudged
		r.Unjudged++
	default:
		row.Verdict = verdictInTime
		r.InTime++
		if own != nil && own.PredictedAccuracy != nil && chosen.PredictedAccuracy != nil {
			loss.add(*own.PredictedAccuracy - *chosen.PredictedAccuracy)
		}
	}
	if r.Rows = append(r.Rows, row); len(r.Rows) > maxLateRows {
		r.Rows = r.Rows[1:]
	}
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

// WriteText writes the result for people.
func (r *LateJobs) WriteText(out io.Writer) error {
	fmt.Fprintf(out, "%s to %s: %d jobs with a time limit or an SLO, %d of them late\n\n",
		r.From.UTC().Format(time.DateOnly), r.Until.UTC().Format(time.DateOnly), r.Jobs, r.Late)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range []struct {
		n    int
		text string
	}{
		{r.InTime, "would have been in time with the batch size that Courier promises"},
		{r.StillLate, "late with that batch size as well"},
		{r.Refused, "no promise with any batch size: known before the start"},
		{r.Unknown, "unknown: too few runs of the model before"},
		{r.Unjudged, "promised, but the outcome cannot be predicted"},
		{r.MadeLate, "in time, but late with the batch size that Courier promises"},
	} {
		fmt.Fprintf(t, "%d\t  %s\n", line.n, line.text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.AccuracyLoss != nil {
		fmt.Fprintf(out, "\nThe jobs that would have been in time lose %.4f accuracy (predicted mean).\n",
			*r.AccuracyLoss)
	}
	if len(r.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "late job\tmodel\tallowed\tbatch\tadvised\tpredicted\t")
	for i := range r.Rows {
		j := &r.Rows[i]
		advised, predicted := "-", "-"
		if j.Decision == schemas.MeetsSLO {
			advised = fmt.Sprint(j.AdvisedBatchSize)
			if j.PredictedSeconds != nil {
				predicted = schemas.FormatSeconds(*j.PredictedSeconds)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", j.JobID, j.Model,
			schemas.FormatSeconds(j.AllowedSeconds), j.BatchSize, advised, predicted, j.Verdict)
	}
	return t.Flush()
}
