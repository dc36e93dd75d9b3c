package schemas

import (
	"fmt"
	"time"
)

// What drifts: jobs as a whole, those on a node or on nodes of a type, or those of a model.
const (
	DriftAll      = "all"
	DriftNode     = "node"
	DriftNodeType = "node_type"
	DriftModel    = "model"
)

// What becomes of a correction. An alarm of a method that does not correct has none of these.
const (
	DriftActive    = "active"    // predictions in scope are multiplied by the ratio
	DriftReplaced  = "replaced"  // a fit has learned from the jobs since then: no correction is needed
	DriftWithdrawn = "withdrawn" // later jobs do not show it
)

// Drift is regressor.<target>.drift: jobs no longer are as the regressor in use
// predicts, since when, by how much, and what explains most of it. It is said
// once; the way back is a drift of its own. Where predictions are corrected, it is
// said when a correction begins, when it changes by more than its interval, and when
// it ends.
type Drift struct {
	Stamp
	Target        string `json:"target" ch:"target"`
	CauseSequence uint64 `json:"cause_sequence" ch:"cause_sequence"` // of the job's event that showed it
	ModelDigest   string `json:"model_digest" ch:"model_digest"`     // sha256 of the regressor that predicted, or that is corrected, in hex

	Scope       string    `json:"scope" ch:"scope"`                     // what drifted: "all", "node", "node_type" or "model"
	Node        string    `json:"node,omitempty" ch:"node"`             // if it is a node
	Model       string    `json:"model,omitempty" ch:"model"`           // if it is a model
	Dataset     string    `json:"dataset,omitempty" ch:"dataset"`       // on which it is trained, if it is a model; absent: none was named
	SinceAt     time.Time `json:"since_at" ch:"since_at"`               // begin of the first job that shows it
	Ratio       float64   `json:"ratio" ch:"ratio"`                     // measured / predicted of what drifted since then, geometric mean; 1 when a correction ends
	BeforeRatio float64   `json:"before_ratio" ch:"before_ratio"`       // what that was known to be before; 1 at first
	Jobs        uint32    `json:"jobs" ch:"jobs"`                       // of what drifted, that ended since then
	RestRatio   *float64  `json:"rest_ratio,omitempty" ch:"rest_ratio"` // that of all other jobs; absent if none ended
	RestJobs    uint32    `json:"rest_jobs" ch:"rest_jobs"`             // all others that ended since then

	ExplainedRatio float64   `json:"explained_ratio" ch:"explained_ratio"`         // share of the squared surprises since then that this alone explains, 0 to 1
	Detector       string    `json:"detector" ch:"detector"`                       // that alarmed: "page_hinkley/all", "page_hinkley/node/<node>" or "page_hinkley/model/<model>"; "factor" of a correction
	Statistic      float64   `json:"statistic" ch:"statistic"`                     // of the detector, in standard deviations
	Threshold      float64   `json:"threshold" ch:"threshold"`                     // that it exceeds
	Deviation      float64   `json:"deviation" ch:"deviation"`                     // standard deviation of the regressor's log residuals
	WindowJobs     uint32    `json:"window_jobs" ch:"window_jobs"`                 // the last jobs that are still alike (ADWIN); of a correction, those compared
	WindowSinceAt  time.Time `json:"window_since_at" ch:"window_since_at"`         // begin of the first of them
	KnownChanges   []string  `json:"known_changes,omitempty" ch:"known_changes"`   // what else changed then: nodes that joined or left, core counts, new models
	Message        string    `json:"message" ch:"message"`                         // all that in words
	CoverageRatio  *float64  `json:"coverage_ratio,omitempty" ch:"coverage_ratio"` // share of its jobs' epochs since then within the regressor's bound at 0.95; absent: it has none

	State         string   `json:"state,omitempty" ch:"state"`                     // of a correction: "active", "replaced" or "withdrawn"; absent of an alarm
	NodeType      string   `json:"node_type,omitempty" ch:"node_type"`             // hardware, of a scope of a node type; of a model: on such nodes only
	BatchSizeFrom uint32   `json:"batch_size_from,omitempty" ch:"batch_size_from"` // of a model: these batch sizes and larger ones only
	BatchSizeTo   uint32   `json:"batch_size_to,omitempty" ch:"batch_size_to"`     // of a model: these batch sizes and smaller ones only
	RatioLow      *float64 `json:"ratio_low,omitempty" ch:"ratio_low"`             // 95 % interval of the ratio, of an active correction
	RatioHigh     *float64 `json:"ratio_high,omitempty" ch:"ratio_high"`
}

// DriftID returns the identity of a drift that a job's event showed.
func DriftID(target string, cause uint64) string { return fmt.Sprintf("%s/%d/drift", target, cause) }

// CorrectionID returns the identity of the drift that says what became of a correction with the
// promotion of some revision.
func CorrectionID(target string, revision uint64, scope string) string {
	return fmt.Sprintf("%s/%d/drift/%s", target, revision, scope)
}

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
	if err := e.validateScope(); err != nil {
		return err
	}
	switch e.State {
	case "", DriftActive, DriftReplaced, DriftWithdrawn:
	default:
		return Invalid("state", "%q is not active, replaced or withdrawn", clip(e.State))
	}
	for _, v := range []struct {
		field string
		value *float64
	}{
		{"ratio", &e.Ratio}, {"before_ratio", &e.BeforeRatio}, {"rest_ratio", e.RestRatio},
		{"ratio_low", e.RatioLow}, {"ratio_high", e.RatioHigh},
	} {
		if !finite(v.value) || v.value != nil && *v.value <= 0 {
			return Invalid(v.field, "%v is not a finite number above 0", *v.value)
		}
	}
	return validateRatio("explained_ratio", &e.ExplainedRatio)
}

func (e *Drift) validateScope() error {
	for field, text := range map[string]string{"dataset": e.Dataset, "node_type": e.NodeType} {
		if err := validateText(field, text); err != nil {
			return err
		}
	}
	switch e.Scope {
	case DriftAll, DriftNodeType:
	case DriftNode:
		return validateToken("node", e.Node)
	case DriftModel:
		if e.Model == "" {
			return Invalid("model", "is missing: the model that drifted")
		}
		return validateText("model", e.Model)
	default:
		return Invalid("scope", "%q is not all, node, node_type or model", clip(e.Scope))
	}
	return nil
}
