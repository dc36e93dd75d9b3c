package policy

import "time"

// MoveDecision is what a policy wants to happen now.
type MoveDecision struct {
	Moves []Move
	// ReviewAt is when the policy wants to be called although nothing else happens; zero: at the
	// next submission or end of a job.
	ReviewAt time.Time
}

// Kind is what a move does.
type Kind string

// Kinds of moves.
const (
	Admit  Kind = "admit"  // promise a queued job its deadline, with one of its options
	Refuse Kind = "refuse" // refuse a queued job for good
	Resize Kind = "resize" // change the number of units of an admitted job; 0 stops it
)

// Move is one change. A job that is admitted and starts at once has two moves, Admit first.
type Move struct {
	Kind   Kind
	Job    string // ID
	Option int    // for Admit: index of the job's option
	Units  int    // for Resize: number of units from now on
	Reason Reason
}

// Reason is why a policy returned a move.
type Reason string

// Reasons of moves.
const (
	ReasonFits       Reason = "fits"        // all promises and this deadline can be met
	ReasonUnlimited  Reason = "unlimited"   // the policy admits every job
	ReasonTooSlow    Reason = "too slow"    // an empty cluster would not meet the deadline
	ReasonNoCapacity Reason = "no capacity" // promises to other jobs leave too little capacity
	ReasonTooCostly  Reason = "too costly"  // the job would take the place of several others
	ReasonRound      Reason = "round"       // another arrival of the same round does not fit
	ReasonShare      Reason = "share"       // minimum share to the deadline
	ReasonLeftOver   Reason = "left over"   // more than the minimum share
	ReasonYield      Reason = "yield"       // the units are needed by other jobs
	ReasonGrowing    Reason = "growing"     // the loss falls fast
	ReasonNewcomer   Reason = "newcomer"    // the fall of the loss is not known yet
	ReasonWatched    Reason = "watched"     // the loss hardly fell once, or it rises
	ReasonCompleting Reason = "completing"  // the loss hardly fell twice
	ReasonStale      Reason = "stale"       // the loss is too old to plan from
	ReasonCost       Reason = "least cost"  // the fewest unit-seconds
	ReasonOwnEpochs  Reason = "own epochs"  // the job's own epochs show that it would be faster
)

// A Policy decides about a cluster. See the package comment for its obligations.
type Policy interface {
	Plan(view *ClusterView, now time.Time) MoveDecision
}
