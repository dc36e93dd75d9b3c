// Package receipt summarizes a job after its end: its promise and its result, the time that it
// lost to neighbours and waits, which batch size would have been better, and what was learned.
//
// Read collects the events of a job from the log and asks the advisor again; New is a pure function
// of them. ReadHistory returns the course of a job that may still run. Figures that
// were not measured are absent, never zero.
package receipt

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// JobReceipt is the summary of one job. Nil figures are unknown.
type JobReceipt struct {
	JobID      string        `json:"job_id"`
	State      schemas.State `json:"state"`
	Reason     string        `json:"reason,omitempty"`
	NotLearned string        `json:"not_learned,omitempty"` // why the run is not learned from, wholly or in part
	Model      string        `json:"model"`
	Dataset    string        `json:"dataset,omitempty"`
	Nodes      []string      `json:"nodes"`

	BatchSize  uint32 `json:"batch_size"`
	CPUs       uint32 `json:"cpus"`              // of each worker
	Workers    uint32 `json:"workers,omitempty"` // 0: a single one
	Epochs     uint32 `json:"epochs"`
	EpochsDone uint32 `json:"epochs_done"`

	Promise *PredictedOutcome `json:"promise,omitempty"` // nil: the job was started without a request
	Result  JobResult         `json:"result"`
	Losses  []Loss            `json:"losses"` // of the last 20,000 epochs, largest first
	Better  *Better           `json:"better,omitempty"`
	Learned *Learned          `json:"learned,omitempty"`
	Output  string            `json:"output,omitempty"` // its last lines, if they were recorded
}

// PredictedOutcome is the answer to the request, or the admission of a queued job.
type PredictedOutcome struct {
	Decision          schemas.Decision `json:"decision"`
	SLOSeconds        float64          `json:"slo_seconds,omitempty"`     // 0: none
	TargetAccuracy    float64          `json:"target_accuracy,omitempty"` // 0: none
	Confidence        float64          `json:"confidence"`
	Probability       *float64         `json:"probability,omitempty"`
	PredictedSeconds  *float64         `json:"predicted_seconds,omitempty"`
	UpperBoundSeconds *float64         `json:"upper_bound_seconds,omitempty"`
	PredictedAccuracy *float64         `json:"predicted_accuracy,omitempty"`
}

// JobResult is the measured result of a job.
type JobResult struct {
	MetSLO          *bool    `json:"met_slo,omitempty"` // nil: no SLO, cancelled, lost or incomplete
	Incomplete      bool     `json:"incomplete,omitempty"`
	WaitSeconds     *float64 `json:"wait_seconds,omitempty"`     // from the request to the start
	StartupSeconds  *float64 `json:"startup_seconds,omitempty"`  // until the first epoch
	RunSeconds      *float64 `json:"run_seconds,omitempty"`      // from the start to the end of the last epoch
	ResponseSeconds *float64 `json:"response_seconds,omitempty"` // from the request to the end of the last epoch
	AfterSeconds    *float64 `json:"after_seconds,omitempty"`    // from there to the end
	Accuracy        *float64 `json:"accuracy,omitempty"`
	Metric          string   `json:"metric,omitempty"` // behind the accuracy, as printed
	MetricValue     *float64 `json:"metric_value,omitempty"`

	Phases schemas.Phases `json:"phases,omitzero"` // of the epochs, measured inside the training
}

// Causes of lost time.
const (
	LossNeighbour = "neighbour" // another job on the same node
	LossStorage   = "storage"   // all tasks of the job waited for storage
	LossMemory    = "memory"    // all tasks of the job waited for memory
)

// Loss is time that a job lost.
type Loss struct {
	Cause   string  `json:"cause"`
	JobID   string  `json:"job_id,omitempty"` // of the neighbour
	Seconds float64 `json:"seconds"`
}

// Better is the batch size that the advisor would choose now for the same request.
type Better struct {
	BatchSize         uint32           `json:"batch_size"`
	Decision          schemas.Decision `json:"decision"`
	PredictedSeconds  *float64         `json:"predicted_seconds,omitempty"`
	PredictedAccuracy *float64         `json:"predicted_accuracy,omitempty"`
}

// Learned compares the evidence about the configuration before and after the run.
type Learned struct {
	RunsBefore int      `json:"runs_before"` // of the configuration
	RunsNow    int      `json:"runs_now"`
	ErrorRatio *float64 `json:"error_ratio,omitempty"` // measured / predicted time - 1
}

// Story is what a receipt is made of.
type Story struct {
	Status     schemas.JobStatus
	Events     []schemas.Event     // of the job; its epochs last, in the order of the log
	Neighbours []schemas.JobStatus // jobs that may have shared its nodes
	Now        *schemas.Advice     // answer to the same request now; nil: unknown
}

// New returns the receipt of a job.
func New(s *Story) *JobReceipt {
	j := &s.Status
	r := &JobReceipt{
		JobID:      j.JobID,
		State:      j.State,
		Reason:     j.Reason,
		NotLearned: j.NotLearned,
		Model:      j.Model,
		Dataset:    j.Dataset,
		Nodes:      j.Nodes,
		BatchSize:  j.BatchSize,
		CPUs:       j.CPUs,
		Workers:    j.Workers,
		Epochs:     j.Epochs,
		EpochsDone: j.EpochsDone,
		Losses:     []Loss{},
		Result:     JobResult{MetSLO: j.MetSLO, Incomplete: j.Incomplete, Accuracy: j.Accuracy},
	}
	epochs := r.read(s)
	r.addWaits(epochs)
	r.addNeighbours(epochs, s.Neighbours)
	slices.SortStableFunc(r.Losses, func(a, b Loss) int { return cmp.Compare(b.Seconds, a.Seconds) })
	r.compare(s)
	return r
}

// read takes the events of the last run, and returns its epochs.
func (r *JobReceipt) read(s *Story) []*schemas.Epoch {
	var epochs []*schemas.Epoch
	for _, e := range s.Events {
		switch e := e.(type) {
		case *schemas.Submitted:
			r.promise(&e.Advice, s.Status.TargetAccuracy)
		case *schemas.JobAdmitted:
			r.promise(&e.Advice, s.Status.TargetAccuracy)
		case *schemas.Epoch:
			if e.Run == s.Status.Run {
				epochs = append(epochs, e)
				r.Result.Metric, r.Result.MetricValue = e.Metric, e.MetricValue
				r.Result.Phases.Add(e.Phases)
			}
		case *schemas.Ended:
			if e.Run == s.Status.Run {
				r.Result.StartupSeconds, r.Output = e.StartupSeconds, e.Output
			}
		}
	}
	j := &s.Status
	r.Result.WaitSeconds = between(j.SubmittedAt, j.StartedAt)
	r.Result.RunSeconds = between(j.StartedAt, j.TrainedAt)
	r.Result.ResponseSeconds = between(j.SubmittedAt, j.TrainedAt)
	r.Result.AfterSeconds = between(j.TrainedAt, j.EndedAt)
	return epochs
}

// between returns the seconds between two instants, or nil if one is unknown.
func between(from, to *time.Time) *float64 {
	if from == nil || to == nil || to.Before(*from) {
		return nil
	}
	return new(to.Sub(*from).Seconds())
}

// promise takes the answer to the request, or an admission after it.
func (r *JobReceipt) promise(a *schemas.Advice, target float64) {
	r.Promise = &PredictedOutcome{
		Decision: a.Decision, SLOSeconds: a.SLOSeconds, TargetAccuracy: target, Confidence: a.Confidence,
	}
	if c := a.Chosen; c != nil {
		p := r.Promise
		p.Probability, p.PredictedSeconds = c.Probability, c.PredictedSeconds
		p.UpperBoundSeconds, p.PredictedAccuracy = c.UpperBoundSeconds, c.PredictedAccuracy
	}
}

// addWaits adds the time in which all tasks of the job waited (PSI).
func (r *JobReceipt) addWaits(epochs []*schemas.Epoch) {
	storage, memory := 0.0, 0.0
	hasStorage, hasMemory := false, false
	for _, e := range epochs {
		if p := e.JobIOFullPressureRatio; p != nil {
			storage, hasStorage = storage+*p*e.DurationSeconds, true
		}
		if p := e.JobMemoryFullPressureRatio; p != nil {
			memory, hasMemory = memory+*p*e.DurationSeconds, true
		}
	}
	if hasStorage {
		r.Losses = append(r.Losses, Loss{Cause: LossStorage, Seconds: storage})
	}
	if hasMemory {
		r.Losses = append(r.Losses, Loss{Cause: LossMemory, Seconds: memory})
	}
}

// addNeighbours adds the time that epochs beside other jobs took longer than the epochs without
// them, with the same batch size. It is divided among the neighbours by their CPUs and by how long
// they overlapped. Without an epoch alone, it is unknown.
func (r *JobReceipt) addNeighbours(epochs []*schemas.Epoch, jobs []schemas.JobStatus) {
	type beside struct {
		epoch  *schemas.Epoch
		shares []float64 // of the neighbours
		total  float64
	}
	var all []beside
	alone := map[uint32][]float64{} // seconds by batch size
	for _, e := range epochs {
		b := beside{epoch: e, shares: make([]float64, len(jobs))}
		for i := range jobs {
			if jobs[i].JobID != r.JobID && sharesNode(jobs[i].Nodes, e.Nodes) {
				cpus := max(1, schemas.Processes(jobs[i].Workers, jobs[i].CPUs))
				b.shares[i] = overlap(e.At, e.Duration(), &jobs[i]) * float64(cpus)
				b.total += b.shares[i]
			}
		}
		if b.total == 0 {
			alone[e.BatchSize] = append(alone[e.BatchSize], e.DurationSeconds)
		}
		all = append(all, b)
	}

	lost := make([]float64, len(jobs))
	for _, b := range all {
		base := alone[b.epoch.BatchSize]
		if b.total == 0 || len(base) == 0 {
			continue
		}
		excess := b.epoch.DurationSeconds - median(base)
		for i, share := range b.shares {
			lost[i] += excess * share / b.total
		}
	}
	for i, seconds := range lost {
		if seconds > 0 {
			r.Losses = append(r.Losses,
				Loss{Cause: LossNeighbour, JobID: jobs[i].JobID, Seconds: seconds})
		}
	}
}

func sharesNode(a, b []string) bool {
	return slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) })
}

// overlap returns the seconds of an epoch, by its end and duration, in which another job ran.
func overlap(end time.Time, d time.Duration, j *schemas.JobStatus) float64 {
	if j.StartedAt == nil {
		return 0
	}
	begin := end.Add(-d)
	if j.StartedAt.After(begin) {
		begin = *j.StartedAt
	}
	if j.EndedAt != nil && j.EndedAt.Before(end) {
		end = *j.EndedAt
	}
	return max(0, end.Sub(begin).Seconds())
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// compare adds what the advisor would answer now, and what it learned.
func (r *JobReceipt) compare(s *Story) {
	if s.Now == nil || r.Promise == nil || s.Now.Chosen == nil {
		return
	}
	c := s.Now.Chosen
	if c.BatchSize != r.BatchSize && s.Now.Decision == schemas.MeetsSLO {
		r.Better = &Better{
			BatchSize: c.BatchSize, Decision: s.Now.Decision, PredictedSeconds: c.PredictedSeconds,
			PredictedAccuracy: c.PredictedAccuracy,
		}
	}
	r.Learned = &Learned{RunsNow: r.runsIn(s.Now)}
	for _, e := range s.Events {
		if e, ok := e.(*schemas.Submitted); ok {
			r.Learned.RunsBefore = r.runsIn(&e.Advice)
		}
	}
	if p, t := r.Promise.PredictedSeconds, r.Result.RunSeconds; p != nil && t != nil && *p > 0 &&
		r.EpochsDone >= r.Epochs {
		r.Learned.ErrorRatio = new(*t / *p - 1)
	}
}

// runsIn returns the number of runs of the job's configuration behind an advice.
func (r *JobReceipt) runsIn(a *schemas.Advice) int {
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if alt.BatchSize == r.BatchSize && alt.CPUs == r.CPUs &&
			schemas.IsSameWorkers(alt.Workers, r.Workers) && alt.Evidence != nil && alt.Evidence.Time != nil {
			return int(alt.Evidence.Time.ConfigurationRuns)
		}
	}
	return 0
}
