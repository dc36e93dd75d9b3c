package schemas

import (
	"fmt"
	"time"
)

// What drifts: jobs as a whole, those on a node, or those of a model.
const (
	DriftAll   = "all"
	DriftNode  = "node"
	DriftModel = "model"
)

// Drift is regressor.<target>.drift: jobs no longer are as the regressor in use
// predicts, since when, by how much, and what explains most of it. It is said
// once; the way back is a drift of its own.
type Drift struct {
	Stamp
	Target        string `json:"target" ch:"target"`
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"` // of the job's event that showed it
	ModelDigest   string `json:"model_digest" ch:"model_digest"`     // sha256 of the regressor that predicted, in hex

	Scope       string    `json:"scope" ch:"scope"`                     // what drifted: "all", "node" or "model"
	Node        string    `json:"node,omitempty" ch:"node"`             // if it is a node
	Model       string    `json:"model,omitempty" ch:"model"`           // if it is a model
	SinceAt     time.Time `json:"since_at" ch:"since_at"`               // begin of the first job that shows it
	Ratio       float64   `json:"ratio" ch:"ratio"`                     // measured / predicted of what drifted since then, geometric mean
	BeforeRatio float64   `json:"before_ratio" ch:"before_ratio"`       // what that was known to be before; 1 at first
	Jobs        uint32    `json:"jobs" ch:"jobs"`                       // of what drifted, that ended since then
	RestRatio   *float64  `json:"rest_ratio,omitempty" ch:"rest_ratio"` // that of all other jobs; absent if none ended
	RestJobs    uint32    `json:"rest_jobs" ch:"rest_jobs"`             // all others that ended since then

	ExplainedRatio float64   `json:"explained_ratio" ch:"explained_ratio"`         // share of the squared surprises since then that this alone explains, 0 to 1
	Detector       string    `json:"detector" ch:"detector"`                       // that alarmed: "page_hinkley/all", "page_hinkley/node/<node>" or "page_hinkley/model/<model>"
	Statistic      float64   `json:"statistic" ch:"statistic"`                     // of the detector, in standard deviations
	Threshold      float64   `json:"threshold" ch:"threshold"`                     // that it exceeds
	Deviation      float64   `json:"deviation" ch:"deviation"`                     // standard deviation of the regressor's log residuals
	WindowJobs     uint32    `json:"window_jobs" ch:"window_jobs"`                 // the last jobs that are still alike (ADWIN)
	WindowSinceAt  time.Time `json:"window_since_at" ch:"window_since_at"`         // begin of the first of them
	KnownChanges   []string  `json:"known_changes,omitempty" ch:"known_changes"`   // what else changed then: nodes that joined or left, core counts, new models
	Message        string    `json:"message" ch:"message"`                         // all that in words
	CoverageRatio  *float64  `json:"coverage_ratio,omitempty" ch:"coverage_ratio"` // share of its jobs' epochs since then within the regressor's bound at 0.95; absent: it has none
}

// DriftID returns the identity of a drift that a job's event showed.
func DriftID(target string, cause uint64) string { return fmt.Sprintf("%s/%d/drift", target, cause) }

// Subject implements Event.
func (e *Drift) Subject() string { return RegressorSubject(e.Target, EventDrift) }

// Validate implements Event.
func (e *Drift) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	if err := validateToken("target", e.Target); err != nil {
		return err
	}
	switch e.Scope {
	case DriftAll:
	case DriftNode:
		if err := validateToken("node", e.Node); err != nil {
			return err
		}
	case DriftModel:
		if e.Model == "" {
			return Invalid("model", "is missing: the model that drifted")
		}
		if err := validateText("model", e.Model); err != nil {
			return err
		}
	default:
		return Invalid("scope", "%q is not all, node or model", clip(e.Scope))
	}
	for _, v := range []struct {
		field string
		value *float64
	}{{"ratio", &e.Ratio}, {"before_ratio", &e.BeforeRatio}, {"rest_ratio", e.RestRatio}} {
		if !finite(v.value) || v.value != nil && *v.value <= 0 {
			return Invalid(v.field, "%v is not a finite number above 0", *v.value)
		}
	}
	return validateRatio("explained_ratio", &e.ExplainedRatio)
}
