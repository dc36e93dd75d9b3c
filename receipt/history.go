package receipt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// maxPoints bounds the epochs and the predictions of a history. A longer series keeps every second,
// fourth, ... point and the last one.
const maxPoints = 1000

// maxChanges bounds the changes of a history; the newest are kept.
const maxChanges = 200

// JobHistory is the course of a job up to now: its epochs, its predictions, and its neighbours.
type JobHistory struct {
	Job         schemas.JobStatus   `json:"job"`
	Request     *schemas.JobRequest `json:"request,omitempty"` // nil: the log has none
	Epochs      []HistoryEpoch      `json:"epochs"`
	Predictions []PredictionPoint   `json:"predictions"`
	Changes     []Change            `json:"changes"`
	Neighbours  []schemas.JobStatus `json:"neighbours"` // that ran on a node of the job at the same time
}

// HistoryEpoch is one epoch of a history. Nil figures were not measured.
type HistoryEpoch struct {
	At              time.Time `json:"at"` // end of the epoch
	Run             uint32    `json:"run"`
	Epoch           uint32    `json:"epoch"`
	BatchSize       uint32    `json:"batch_size"`
	DurationSeconds float64   `json:"duration_seconds"`
	Loss            *float64  `json:"loss,omitempty"`
	Accuracy        *float64  `json:"accuracy,omitempty"`
	Metric          string    `json:"metric,omitempty"` // behind the accuracy, as printed
	MetricValue     *float64  `json:"metric_value,omitempty"`
	ConcurrentJobs  *float64  `json:"concurrent_jobs,omitempty"` // mean, this one included; counted if not reported
	NodeCPURatio    *float64  `json:"node_cpu_ratio,omitempty"`
	NodeIOWaitRatio *float64  `json:"node_io_wait_ratio,omitempty"`
	// Shares of the epoch in which all tasks of the job waited for storage or memory.
	StorageWaitRatio *float64 `json:"storage_wait_ratio,omitempty"`
	MemoryWaitRatio  *float64 `json:"memory_wait_ratio,omitempty"`

	schemas.Phases
}

// PredictionPoint is what one advice predicted for the job as it ran then.
type PredictionPoint struct {
	At                time.Time        `json:"at"`
	EpochsDone        uint32           `json:"epochs_done"`
	Decision          schemas.Decision `json:"decision"`
	Action            schemas.Action   `json:"action"`
	Message           string           `json:"message"`
	EndsAt            *time.Time       `json:"ends_at,omitempty"`   // median
	LatestAt          *time.Time       `json:"latest_at,omitempty"` // upper bound at the confidence
	Probability       *float64         `json:"probability,omitempty"`
	PredictedAccuracy *float64         `json:"predicted_accuracy,omitempty"`
}

// Change is an event of a job other than an epoch or an advice.
type Change struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // last part of the subject: submitted, started, ...; cleared: end of a risk
	Text string    `json:"text"`
}

// ReadHistory returns the history of a job from the event log. It fails if the job is unknown. The
// log keeps advice for days only; older predictions are missing.
func ReadHistory(ctx context.Context, b *bus.Bus, jobID string) (*JobHistory, error) {
	q := &schemas.JobStatusRequest{JobID: jobID}
	var s Story
	if err := b.Request(ctx, schemas.SubjectJobStatus, q, &s.Status); err != nil {
		return nil, err
	}
	var r historyReader
	for _, stream := range []string{schemas.StreamJob, schemas.StreamAdvice} {
		o := bus.FollowOptions{Stream: stream, Subjects: []string{schemas.JobSubject(jobID, "*")}}
		err := b.Read(ctx, o, func(record bus.Record) error {
			r.add(record.Event)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the events of job %s: %w", jobID, err)
		}
	}
	if err := s.addNeighbours(ctx, b); err != nil {
		return nil, err
	}
	return r.history(&s), nil
}

type historyReader struct {
	request     *schemas.JobRequest
	settings    []settingSince
	epochs      thinned[HistoryEpoch]
	predictions thinned[PredictionPoint]
	changes     []Change
}

// settingSince is the batch size and the CPUs of a job from an instant on.
type settingSince struct {
	at        time.Time
	batchSize uint32
	cpus      uint32
}

func (r *historyReader) add(event schemas.Event) {
	switch e := event.(type) {
	case *schemas.Submitted:
		r.request = &e.Request
		r.change(e.At, schemas.EventSubmitted, e.Advice.Message)
		r.predict(&e.Advice, e.Advice.Chosen)
	case *schemas.JobAdmitted:
		r.change(e.At, schemas.EventAdmitted, e.Advice.Message)
		r.predict(&e.Advice, e.Advice.Chosen)
	case *schemas.Started:
		r.change(e.At, schemas.EventStarted, fmt.Sprintf("run %d: %s on %s",
			e.Run, schemas.FormatBatchSize(e.BatchSize), schemas.FormatShape(e.Workers, e.CPUs)))
		r.set(e.At, &e.Setting)
	case *schemas.Moved:
		r.change(e.At, schemas.EventMoved, moveText(e))
		if e.Outcome == schemas.MoveApplied {
			r.set(e.At, &schemas.Setting{BatchSize: e.ToBatchSize, CPUs: e.ToCPUs})
		}
	case *schemas.Risk:
		kind := schemas.EventRisk
		if e.Cleared {
			kind = "cleared"
		}
		r.change(e.At, kind, e.Message)
	case *schemas.Ended:
		r.change(e.At, e.Outcome, e.Reason)
	case *schemas.Advice:
		r.predict(e, r.running(e))
	case *schemas.Epoch:
		r.set(e.At, &e.Setting)
		r.epochs.add(HistoryEpoch{
			At:               e.At,
			Run:              e.Run,
			Epoch:            e.Epoch,
			BatchSize:        e.BatchSize,
			DurationSeconds:  e.DurationSeconds,
			Loss:             e.Loss,
			Accuracy:         e.Accuracy,
			Metric:           e.Metric,
			MetricValue:      e.MetricValue,
			ConcurrentJobs:   e.ConcurrentJobs,
			NodeCPURatio:     e.NodeCPURatio,
			NodeIOWaitRatio:  e.NodeIOWaitRatio,
			StorageWaitRatio: e.JobIOFullPressureRatio,
			MemoryWaitRatio:  e.JobMemoryFullPressureRatio,
			Phases:           e.Phases,
		})
	}
}

// moveText describes a step of a move, with its predicted and measured effect.
func moveText(e *schemas.Moved) string {
	text := fmt.Sprintf("batch size %d to %d", e.FromBatchSize, e.ToBatchSize)
	if e.Move == schemas.MoveCPUs {
		text = fmt.Sprintf("%d to %s", e.FromCPUs, schemas.FormatCPUs(e.ToCPUs))
		if e.Purpose != "" {
			text += ", " + strings.ReplaceAll(e.Purpose, "_", " ")
		}
		if e.ForJob != "" {
			text += " to " + e.ForJob
		}
	}
	if e.Move == schemas.MoveLoaders {
		text = fmt.Sprintf("%d to %s", e.FromLoaders, schemas.FormatCount(uint64(e.ToLoaders), "loader"))
	}
	text += ": " + strings.ReplaceAll(e.Outcome, "_", " ")
	if e.Reason != "" {
		text += ", " + e.Reason
	}
	return text + moveInputs(e)
}

// moveInputs describes why a move of CPUs was planned. Of the steps of a move, only the first epoch with
// it, or the start of a dry run, repeats that.
func moveInputs(e *schemas.Moved) string {
	if e.Outcome != schemas.MoveCarriedOut && e.Outcome != schemas.MoveDryRun {
		return ""
	}
	text := ""
	if e.Rule != "" {
		text += "; rule: " + e.Rule
	}
	if e.BeforeProbability != nil && e.AfterProbability != nil {
		text += fmt.Sprintf("; SLO met with probability %s instead of %s",
			schemas.FormatProbability(*e.AfterProbability),
			schemas.FormatProbability(*e.BeforeProbability))
	}
	if e.SlackSeconds != nil && *e.SlackSeconds >= 0 {
		text += "; slack " + schemas.FormatSeconds(*e.SlackSeconds)
	}
	if e.FreeCPUs > 0 {
		text += "; free: " + schemas.FormatCPUs(e.FreeCPUs)
	}
	for i, n := range e.RejectedCPUs[:min(len(e.RejectedCPUs), len(e.RejectedReasons))] {
		text += fmt.Sprintf("; not %s: %s", schemas.FormatCPUs(n), e.RejectedReasons[i])
	}
	return text
}

func (r *historyReader) change(at time.Time, kind, text string) {
	if len(r.changes) == maxChanges {
		r.changes = r.changes[1:]
	}
	r.changes = append(r.changes, Change{At: at, Kind: kind, Text: text})
}

// set remembers the setting of a job. The number of changes is bounded like that of changes.
func (r *historyReader) set(at time.Time, s *schemas.Setting) {
	if n := len(r.settings); n > 0 && r.settings[n-1].batchSize == s.BatchSize &&
		r.settings[n-1].cpus == s.CPUs {
		return
	}
	if len(r.settings) == maxChanges {
		r.settings = r.settings[1:]
	}
	r.settings = append(r.settings, settingSince{at, s.BatchSize, s.CPUs})
}

// running returns the alternative that the job ran with at the time of an advice.
func (r *historyReader) running(a *schemas.Advice) *schemas.Alternative {
	for _, s := range slices.Backward(r.settings) {
		if s.at.After(a.At) {
			continue
		}
		if alt := a.Running(s.batchSize, s.cpus); alt != nil {
			return alt
		}
		break
	}
	return a.Chosen
}

// predict adds a prediction for a job that runs as an alternative.
func (r *historyReader) predict(a *schemas.Advice, running *schemas.Alternative) {
	p := PredictionPoint{
		At: a.At, EpochsDone: a.EpochsDone,
		Decision: a.Decision, Action: a.Action, Message: a.Message,
	}
	if running != nil {
		p.EndsAt, p.LatestAt = after(a.At, running.PredictedSeconds), after(a.At, running.UpperBoundSeconds)
		p.Probability, p.PredictedAccuracy = running.Probability, running.PredictedAccuracy
	}
	r.predictions.add(p)
}

func (r *historyReader) history(s *Story) *JobHistory {
	epochs := r.epochs.all()
	for i := range epochs {
		e := &epochs[i]
		if e.ConcurrentJobs != nil || e.DurationSeconds <= 0 {
			continue
		}
		jobs, length := 1.0, time.Duration(e.DurationSeconds*float64(time.Second))
		for n := range s.Neighbours {
			jobs += overlap(e.At, length, &s.Neighbours[n]) / e.DurationSeconds
		}
		e.ConcurrentJobs = &jobs
	}
	return &JobHistory{
		Job: s.Status, Request: r.request, Epochs: epochs, Predictions: r.predictions.all(),
		Changes: append([]Change{}, r.changes...), Neighbours: append([]schemas.JobStatus{}, s.Neighbours...),
	}
}

// after returns the instant some seconds after another, or nil if the seconds are unknown.
func after(at time.Time, seconds *float64) *time.Time {
	if seconds == nil {
		return nil
	}
	return new(at.Add(time.Duration(*seconds * float64(time.Second))))
}

// thinned keeps at most maxPoints points of a series, evenly spaced, and the last one.
type thinned[T any] struct {
	points []T
	step   int // of the points that are kept
	next   int // index of the next point in the whole series
	last   T
}

func (s *thinned[T]) add(p T) {
	s.step = cmp.Or(s.step, 1)
	s.last = p
	if s.next%s.step == 0 {
		if len(s.points) == maxPoints {
			for i := range maxPoints / 2 {
				s.points[i] = s.points[2*i]
			}
			s.points = s.points[:maxPoints/2]
			s.step *= 2
		}
		if s.next%s.step == 0 {
			s.points = append(s.points, p)
		}
	}
	s.next++
}

func (s *thinned[T]) all() []T {
	points := append([]T{}, s.points...)
	if s.next > 0 && (s.next-1)%s.step != 0 {
		points = append(points, s.last)
	}
	return points
}
