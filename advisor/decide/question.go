package decide

import (
	"cmp"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/regress/evidence"
	"courier/schemas"
)

// Question is the input of Decide: a request, or a running job that is re-predicted.
type Question struct {
	Request  schemas.JobRequest // with defaults
	JobID    string
	Run      uint32                  // 0 before the first start
	Nodes    []string                // that the job runs on, or would
	Hardware []schemas.Hardware      // of Nodes, in the same order
	Foreign  []schemas.Foreign       // load of Nodes that no job causes, in the same order
	Elapsed  time.Duration           // part of the SLO that has passed since submission
	Ahead    time.Duration           // how far Elapsed is ahead of the present time
	Self     *Member                 // progress of the job; nil before it runs
	Others   []Member                // co-located jobs, directly or through other jobs
	Tried    []cluster.BatchAndShape // with epochs of this model on this dataset in the log
	Failures []cluster.Failure       // configurations of this model whose last runs failed
	Stops    []cluster.EpochsEnd     // ends of jobs of this model, if this one may stop early like them
	// StopsAtTarget: the job may end when it has reached its target accuracy; IsKnownToStop: it will, as an
	// earlier job of the model did or as the request says.
	StopsAtTarget, IsKnownToStop bool

	Last      *cluster.AdviceSummary // advice for a running job
	WasLikely bool                   // the job was expected to keep its SLO, with the last advice

	// MoreLoaders is the change of the data loaders of a running job that waits for its input; nil: none.
	MoreLoaders *schemas.PlannedMove

	// notGranted are numbers of CPUs that cannot be chosen. The answer lists them last.
	notGranted []int

	// before are Others with the CPUs that they hold before a loan; nil if the question assumes no loans.
	before []Member
}

// Member is a running job, as a Question describes it.
type Member struct {
	JobID      string
	Setting    schemas.Setting
	Hardware   []schemas.Hardware // of Setting.Nodes, in the same order
	Foreign    []schemas.Foreign  // load of these nodes that no job causes
	EpochsDone uint32
	// BestAccuracy after these epochs; nil if it is not known.
	BestAccuracy *float64
	Since        time.Duration // since the end of its last epoch, or since its start
	Left         time.Duration // until its deadline; 0 if it has none
	Confidence   float64       // of its SLO

	ObservedEpochs []cluster.ObservedEpoch // of its run, which correct its prediction
	Together       uint32                  // number of epochs in its last report, or usually in the first
}

// EpochsDone returns the epochs that a running job has completed.
func (q *Question) EpochsDone() uint32 {
	if q.Self == nil {
		return 0
	}
	return q.Self.EpochsDone
}

// epochsLeft returns the number of epochs that the job may still run.
func (q *Question) epochsLeft() uint32 {
	all := uint32(cmp.Or(q.Request.Epochs, q.Request.MaxEpochs))
	return all - min(all, q.EpochsDone())
}

// Left returns the seconds until the end of the SLO, if there is one.
func (q *Question) Left() float64 { return q.Request.SLO.Seconds() - q.Elapsed.Seconds() }

// isCurrent reports whether a running job already has the batch size and shape of the alternative.
func (q *Question) isCurrent(alt *schemas.Alternative) bool {
	return q.Self != nil && alt.BatchSize == q.Self.Setting.BatchSize &&
		q.Self.Setting.IsShape(alt.Workers, alt.CPUs)
}

func (m *Member) epochsLeft() uint32 {
	return m.Setting.Epochs - min(m.Setting.Epochs, m.EpochsDone)
}

// AtEpochEnd returns the question at the estimated end of the first epoch of the run, as if it were done.
// The answer counts from there.
func (q *Question) AtEpochEnd(within *schemas.EpochProgress) *Question {
	other, self := *q, *q.Self
	self.EpochsDone, self.Since, self.Together = within.RunningEpoch, 0, 1
	self.ObservedEpochs = []cluster.ObservedEpoch{{
		Count: 1, BatchSize: self.Setting.BatchSize, CPUs: self.Setting.Processes(), Seconds: within.EpochSeconds,
	}}
	other.Self = &self
	other.Ahead = time.Duration(within.LeftSeconds() * float64(time.Second))
	other.Elapsed += other.Ahead
	return &other
}

// WithCPUs returns the question of a running job with other numbers of CPUs and its own batch size.
func (q *Question) WithCPUs(counts []int) *Question {
	other := *q
	other.Request.CPUs = counts
	if q.Self != nil {
		other.Request.BatchSizes = []int{int(q.Self.Setting.BatchSize)}
	}
	return &other
}

// WithLoaders returns the question with another number of data loaders.
func (q *Question) WithLoaders(n uint32) *Question {
	other := *q
	other.Request.Loaders = []int{int(n)}
	return &other
}

// WithLoans returns the question of a new job while other jobs lend CPUs. granted is the number of CPUs
// of the new job, and the answer lists its other numbers as not granted; 0 leaves the choice.
func (q *Question) WithLoans(loans []schemas.Loan, granted int) *Question {
	other := *q
	if granted > 0 {
		other.Request.CPUs = schemas.CPUs{granted}
		other.notGranted = slices.DeleteFunc(slices.Clone(q.Request.CPUs), func(n int) bool {
			return n == granted
		})
	}
	other.Others, other.before = slices.Clone(q.Others), q.Others
	for i := range other.Others {
		m := &other.Others[i]
		for _, l := range loans {
			if l.JobID == m.JobID {
				m.Setting.CPUs = l.ToCPUs
			}
		}
	}
	return &other
}

// AssumeMoves returns the question to which a recorded advice was the answer, with the loans and the
// CPUs that were granted.
func (q *Question) AssumeMoves(recorded *schemas.Advice) *Question {
	if !IsAdmittedByCPUs(recorded.Admission) {
		return q
	}
	return q.WithLoans(recorded.Admission.Loans, int(recorded.Chosen.CPUs))
}

// IsAdmittedByCPUs reports whether a job was admitted by the plan for the CPUs of its nodes.
func IsAdmittedByCPUs(v *schemas.Admission) bool {
	return v != nil && v.Verdict == schemas.Admitted && v.Rule == schemas.AdmissionByCPUs
}

// RemainingSeconds returns the time of the remaining epochs by those that the job has done; nil if
// these are unknown.
func (m *Member) RemainingSeconds() *float64 {
	if len(m.ObservedEpochs) == 0 {
		return nil
	}
	alone := evidence.RestAlone(spans(m, func(*cluster.ObservedEpoch) evidence.Configuration {
		return evidence.Configuration{}
	}), int(m.Setting.Epochs))
	if !alone.Known() {
		return nil
	}
	return new(alone.Seconds(int(m.epochsLeft())).Median())
}
