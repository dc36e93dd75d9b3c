package schemas

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Targets are the quantities that regressors predict.
const (
	TargetEpochTime = "epoch_time"   // seconds of one epoch
	TargetStartup   = "startup_time" // seconds of a run outside its epochs: before the first and after the last
	TargetAccuracy  = "accuracy"     // after a number of epochs, 0 to 1
)

// Targets lists every target.
func Targets() []string { return []string{TargetEpochTime, TargetStartup, TargetAccuracy} }

// Champion is the regressor in use for a target: the value of its key in the bucket CHAMPIONS.
// Artifacts are immutable and named by their digest. The grounds of the promotion are stored with
// it, so that another trainer can publish the event again.
type Champion struct {
	Target         string  `json:"target"`
	ModelDigest    string  `json:"model_digest"`    // sha256 of the LightGBM text, in hex
	ManifestDigest string  `json:"manifest_digest"` // sha256 of the manifest, in hex
	FitSeconds     float64 `json:"fit_seconds"`     // wall-clock time of the fit
	Grounds
}

// Reasons for which a regressor is promoted.
const (
	DecidedFirst      = "first"      // the target had no regressor
	DecidedFit        = "fit"        // it has learned from more runs
	DecidedCorrection = "correction" // it is adjusted for drift
	DecidedRequest    = "request"    // a user requested it
)

// Grounds describe why a regressor was promoted.
type Grounds struct {
	// Explanation of the decision.
	Reason string `json:"reason" ch:"reason"`
	// "first", "fit", "correction" or "request"
	DecidedBy string `json:"decided_by,omitempty" ch:"decided_by"`
	// sha256 of the regressor that it replaced; absent if there was none.
	Replaced string `json:"replaced,omitempty" ch:"replaced"`
	// Sequence in the stream JOB up to which the runs were known to the fit.
	SinceSequence uint64 `json:"since_sequence,omitempty" ch:"since_sequence"`
}

// Fitted describes the result of a fit.
type Fitted struct {
	// sha256 of the regressor, in hex.
	ModelDigest string `json:"model_digest" ch:"model_digest"`
	// sha256 of the manifest, in hex.
	ManifestDigest string `json:"manifest_digest" ch:"manifest_digest"`
	// Number of examples.
	Examples uint64 `json:"examples" ch:"examples"`
	// Distinct configurations among them.
	Configurations uint64 `json:"configurations" ch:"configurations"`
	// Error on held-out runs: mean of |error| / truth, for accuracies mean of |error|. It is 0 if no
	// run could be held out.
	HeldOutError float64 `json:"held_out_error" ch:"held_out_error"`
	// Runs since the previous fit by which a refit was compared with what was served.
	ScoredRuns uint64 `json:"scored_runs" ch:"scored_runs"`
	// Mean log density, in nats, of the log times of these runs as predicted before they ran; 0 without
	// such runs.
	ServedScore float64 `json:"served_score" ch:"served_score"`
	// The same by the refit without the run. A model whose refit is worse stays as it was served.
	RefitScore float64 `json:"refit_score" ch:"refit_score"`
	// Wall-clock time of the fit.
	FitSeconds float64 `json:"fit_seconds" ch:"fit_seconds"`
}

// FormatError returns Fitted.HeldOutError as text: "mean error 2.1 %", or for accuracies
// "mean error 0.4 points".
func FormatError(target string, e float64) string {
	if e == 0 {
		return "mean error unknown"
	}
	unit := "%"
	if target == TargetAccuracy {
		unit = "points"
	}
	return "mean error " + strconv.FormatFloat(100*e, 'f', 1, 64) + " " + unit
}

// Trained is regressor.<target>.trained: a regressor was fitted. It is used after its promotion.
type Trained struct {
	Stamp
	Target string `json:"target" ch:"target"`
	Fitted
	// Why it was fitted.
	Reason string `json:"reason" ch:"reason"`
	// Sequence in the stream JOB up to which the runs were known to the fit.
	SinceSequence uint64 `json:"since_sequence" ch:"since_sequence"`
}

// TrainedID returns the identity of a fit. It contains the time, because another fit may have the
// same digest.
func TrainedID(target, manifestDigest string, at time.Time) string {
	return fmt.Sprintf("%s/%.16s/%d/trained", target, manifestDigest, at.UnixNano())
}

// Subject implements Event.
func (e *Trained) Subject() string { return RegressorSubject(e.Target, EventTrained) }

// Validate implements Event.
func (e *Trained) Validate() error {
	return cmp.Or(e.Stamp.validate(), validateToken("target", e.Target))
}

// Promoted is regressor.<target>.promoted: a regressor is the champion from now on.
type Promoted struct {
	Stamp
	Target string `json:"target" ch:"target"`
	// Revision of the champion's key.
	Revision uint64 `json:"revision" ch:"revision"`
	Fitted
	Grounds
}

// PromotedID returns the identity of a promotion.
func PromotedID(target string, revision uint64) string {
	return fmt.Sprintf("%s/%d/promoted", target, revision)
}

// Subject implements Event.
func (e *Promoted) Subject() string { return RegressorSubject(e.Target, EventPromoted) }

// Validate implements Event.
func (e *Promoted) Validate() error {
	return cmp.Or(e.Stamp.validate(), validateToken("target", e.Target))
}

// Rejected is regressor.<target>.rejected: an advisor cannot use a regressor, and keeps the previous
// one.
type Rejected struct {
	Stamp
	Target string `json:"target" ch:"target"`
	// sha256 of the regressor, in hex.
	ModelDigest string `json:"model_digest" ch:"model_digest"`
	// Why it was rejected.
	Reason string `json:"reason" ch:"reason"`
}

// RejectedID returns the identity of a rejection.
func RejectedID(target, digest string) string {
	return fmt.Sprintf("%s/%s/rejected", target, digest)
}

// Subject implements Event.
func (e *Rejected) Subject() string { return RegressorSubject(e.Target, EventRejected) }

// Validate implements Event.
func (e *Rejected) Validate() error {
	return cmp.Or(e.Stamp.validate(), validateToken("target", e.Target))
}

// TrainRequest is regressor.train: fit now.
type TrainRequest struct {
	// Target to fit; absent: every target.
	Target string `json:"target,omitempty"`
}

// Subject implements Request.
func (r *TrainRequest) Subject() string { return SubjectRegressorTrain }

// Validate implements Request.
func (r *TrainRequest) Validate() error { return validateTarget(r.Target, true) }

// validateTarget accepts the targets and, if all is true, "" for all of them.
func validateTarget(target string, all bool) error {
	if target == "" && all {
		return nil
	}
	return OneOf("target", target, Targets()...)
}

// TrainReply is the reply to regressor.train.
type TrainReply struct {
	// Regressors that are now champions.
	Promoted []Promoted `json:"promoted"`
	// Why targets were not fitted.
	Waiting []string `json:"waiting,omitempty"`
}

// PromoteRequest is regressor.promote: make a fitted regressor the champion. The reply is the event
// promoted.
type PromoteRequest struct {
	Target string `json:"target"`
	// sha256 of the regressor, in hex, or at least its first 6 digits if they are unique.
	ModelDigest string `json:"model_digest"`
	// Reason for the record.
	Reason string `json:"reason,omitempty"`
}

// MinDigestDigits is the minimum number of digits in an abbreviated digest.
const MinDigestDigits = 6

// IsDigestPrefix reports whether s is a sha256 in hex, or enough of its first digits.
func IsDigestPrefix(s string) bool {
	isHex := strings.Trim(s, "0123456789abcdef") == ""
	return isHex && len(s) >= MinDigestDigits && len(s) <= 64
}

// Subject implements Request.
func (r *PromoteRequest) Subject() string { return SubjectRegressorPromote }

// Validate implements Request.
func (r *PromoteRequest) Validate() error {
	if !IsDigestPrefix(r.ModelDigest) {
		return Invalid("model_digest",
			"%q is not %d to 64 digits of a sha256 in hex; regressor.list shows them",
			Clip(r.ModelDigest), MinDigestDigits)
	}
	return cmp.Or(validateTarget(r.Target, false), validateText("reason", r.Reason))
}

// RollbackRequest is regressor.rollback: make the previous champion the champion again. The reply
// is the event promoted.
type RollbackRequest struct {
	Target string `json:"target"`
	// Reason for the record.
	Reason string `json:"reason,omitempty"`
}

// Subject implements Request.
func (r *RollbackRequest) Subject() string { return SubjectRegressorRollback }

// Validate implements Request.
func (r *RollbackRequest) Validate() error {
	return cmp.Or(validateTarget(r.Target, false), validateText("reason", r.Reason))
}

// RegressorListRequest is regressor.list: list the regressors.
type RegressorListRequest struct {
	// Target of the regressors; absent: every target.
	Target string `json:"target,omitempty"`
}

// Subject implements Request.
func (r *RegressorListRequest) Subject() string { return SubjectRegressorList }

// Validate implements Request.
func (r *RegressorListRequest) Validate() error { return validateTarget(r.Target, true) }

// States of a regressor.
const (
	RegressorChampion = "champion" // in use
	RegressorTrained  = "trained"  // not promoted yet
	RegressorFormer   = "former"   // was champion before
	RegressorRejected = "rejected" // cannot be used
)

// RegressorVersion is a regressor and its history.
type RegressorVersion struct {
	Target string `json:"target"`
	Fitted
	// "champion", "trained", "former" or "rejected"
	State string `json:"state"`
	// True if its files are still stored, so that it can be promoted.
	Kept      bool      `json:"kept"`
	TrainedAt time.Time `json:"trained_at"`
	// Why it was fitted.
	TrainedFor string `json:"trained_for"`
	// Time of its last promotion; absent if there is none.
	PromotedAt time.Time `json:"promoted_at,omitzero"`
	// Time at which another regressor replaced it; absent if none did.
	ReplacedAt time.Time `json:"replaced_at,omitzero"`
	// Time of its rejection; absent if it was not rejected.
	RejectedAt time.Time `json:"rejected_at,omitzero"`
	// Revision of the champion's key at its last promotion.
	Revision uint64 `json:"revision,omitempty"`
	Grounds
	// Active drift corrections of its predictions, in the order of their beginning.
	Corrections []*Drift `json:"corrections,omitempty"`
}

// RegressorList is the reply to regressor.list.
type RegressorList struct {
	Regressors []RegressorVersion `json:"regressors"` // by target, newest first
}
