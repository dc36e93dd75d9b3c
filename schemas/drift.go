package schemas

import (
	"cmp"
	"fmt"
	"time"
)

// Scopes of a drift.
const (
	DriftAll      = "all"       // all jobs
	DriftNodeType = "node_type" // jobs on nodes of one type
	DriftModel    = "model"     // jobs of one model
)

// States of a correction.
const (
	DriftActive    = "active"    // predictions in scope are multiplied by the ratio
	DriftReplaced  = "replaced"  // a newer fit includes these jobs: no correction is needed
	DriftWithdrawn = "withdrawn" // later jobs do not confirm the drift
)

// Drift is regressor.<target>.drift: jobs deviate from the predictions of the champion. The event
// contains since when, by how much, and which scope explains most of it. It is published when the
// correction of the predictions begins, when it changes by more than its interval, and when it ends.
type Drift struct {
	Stamp
	Target string `json:"target" ch:"target"`
	// Sequence of the job event that revealed the drift.
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"`
	// sha256, in hex, of the regressor whose predictions are corrected.
	ModelDigest string `json:"model_digest" ch:"model_digest"`

	// What drifted: "all", "node_type" or "model".
	Scope string `json:"scope" ch:"scope"`
	// Model, for the scope model.
	Model string `json:"model,omitempty" ch:"model"`
	// Dataset of the model; absent if the jobs have none.
	Dataset string `json:"dataset,omitempty" ch:"dataset"`
	// Start of the first job that shows the drift.
	SinceAt time.Time `json:"since_at" ch:"since_at"`
	// Geometric mean of measured / predicted time in scope since then; 1 when a correction ends.
	Ratio float64 `json:"ratio" ch:"ratio"`
	// Previous ratio of the scope; initially 1.
	BeforeRatio float64 `json:"before_ratio" ch:"before_ratio"`
	// Number of jobs in scope that ended since then.
	Jobs uint32 `json:"jobs" ch:"jobs"`
	// Evidence for the drift: sum of the residuals in scope, in standard deviations.
	Statistic float64 `json:"statistic" ch:"statistic"`
	// Description of the drift.
	Message string `json:"message" ch:"message"`

	// State of the correction: "active", "replaced" or "withdrawn".
	State string `json:"state" ch:"state"`
	// Node type, for the scope node_type; for the scope model, limits it to nodes of the type.
	NodeType string `json:"node_type,omitempty" ch:"node_type"`
	// Limits the scope model to this batch size and larger ones.
	BatchSizeFrom uint32 `json:"batch_size_from,omitempty" ch:"batch_size_from"`
	// Limits the scope model to this batch size and smaller ones.
	BatchSizeTo uint32 `json:"batch_size_to,omitempty" ch:"batch_size_to"`
	// Lower end of the 95 % interval of the ratio of an active correction.
	RatioLow *float64 `json:"ratio_low,omitempty" ch:"ratio_low"`
	// Upper end of that interval.
	RatioHigh *float64 `json:"ratio_high,omitempty" ch:"ratio_high"`
}

// DriftID returns the identity of the drift event that a promotion causes for the correction
// of a scope.
func DriftID(target string, revision uint64, scope string) string {
	return fmt.Sprintf("%s/%d/drift/%s", target, revision, scope)
}

// Subject implements Event.
func (e *Drift) Subject() string { return RegressorSubject(e.Target, EventDrift) }

// Validate implements Event.
func (e *Drift) Validate() error {
	for _, v := range []ratioField{
		{"ratio", &e.Ratio}, {"before_ratio", &e.BeforeRatio},
		{"ratio_low", e.RatioLow}, {"ratio_high", e.RatioHigh},
	} {
		if !finite(v.value) || v.value != nil && *v.value <= 0 {
			return Invalid(v.name, "%v is not a finite number above 0", *v.value)
		}
	}
	if e.Scope == DriftModel && e.Model == "" {
		return Invalid("model", "missing; scope model needs the model that drifted")
	}
	return cmp.Or(
		e.Stamp.validate(),
		validateToken("target", e.Target),
		OneOf("scope", e.Scope, DriftAll, DriftNodeType, DriftModel),
		validateText("model", e.Model),
		validateText("dataset", e.Dataset),
		validateText("node_type", e.NodeType),
		OneOf("state", e.State, DriftActive, DriftReplaced, DriftWithdrawn),
	)
}
