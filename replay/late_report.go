package replay

import (
	"fmt"
	"io"
	"time"

	"courier/schemas"
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

// judge adds a job with the decision of its time and the predictions of the referee.
func (r *LateJobs) judge(j *jobCourse, a, referee *schemas.Advice, loss *mean) {
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
		JobID:            s.JobID,
		Model:            s.Model,
		At:               s.At,
		AllowedSeconds:   j.allowed,
		BatchSize:        s.BatchSize,
		Decision:         a.Decision,
		AdvisedBatchSize: batch,
		PredictedSeconds: predicted,
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

// WriteText writes the result for people. Tabs separate cells, for the caller to align.
func (r *LateJobs) WriteText(out io.Writer) {
	fmt.Fprintf(out, "%s to %s: %d jobs with a time limit or an SLO, %d of them late\n\n",
		r.From.UTC().Format(time.DateOnly), r.Until.UTC().Format(time.DateOnly), r.Jobs, r.Late)
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
		fmt.Fprintf(out, "%d\t%s\n", line.n, line.text)
	}
	if r.AccuracyLoss != nil {
		fmt.Fprintf(out, "\nThe jobs that would have been in time lose %.4f accuracy (predicted mean).\n",
			*r.AccuracyLoss)
	}
	if len(r.Rows) > 0 {
		fmt.Fprintln(out, "\nlate job\tmodel\tallowed\tbatch\tadvised\tpredicted\t")
	}
	for i := range r.Rows {
		j := &r.Rows[i]
		advised, predicted := "-", "-"
		if j.Decision == schemas.MeetsSLO {
			advised = fmt.Sprint(j.AdvisedBatchSize)
			predicted = schemas.OptionalSeconds(j.PredictedSeconds)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", j.JobID, j.Model,
			schemas.FormatSeconds(j.AllowedSeconds), j.BatchSize, advised, predicted, j.Verdict)
	}
}
