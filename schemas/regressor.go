package schemas

import (
	"fmt"
	"slices"
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
	DecidedFirst    = "first"    // the target had no regressor
	DecidedGrowth   = "growth"   // it predicts more configurations than the champion, and no fewer
	DecidedTest     = "test"     // it was better on jobs that neither was fitted on
	DecidedRollback = "rollback" // the previous champion was better on such jobs
	DecidedRequest  = "request"  // a user requested it
)

// Grounds describe why a regressor was promoted or rejected.
type Grounds struct {
	// Explanation of the decision.
	Reason string `json:"reason" ch:"reason"`
	// "first", "growth", "test", "rollback" or "request"
	DecidedBy string `json:"decided_by,omitempty" ch:"decided_by"`
	// sha256 of the regressor with which it was compared; absent if there was none.
	Rival string `json:"rival,omitempty" ch:"rival"`
	// Sequence in the stream JOB: jobs that begin after it were unknown at the time of the fit.
	SinceSequence uint64 `json:"since_sequence,omitempty" ch:"since_sequence"`
	Judgement
}

// Judgement compares a regressor with a competitor on the same jobs, on which neither was fitted. A
// loss is the mean of two pinball losses: the loss of the prediction (level 0.5) and the loss of
// the upper bound. Lower is better. Losses of times are computed on log seconds. Unknown figures
// are absent.
type Judgement struct {
	// Level of the upper bound, 0 to 1.
	JudgedLevel float64 `json:"judged_level,omitempty" ch:"judged_level"`
	// Number of jobs that both can predict.
	JudgedJobs uint32 `json:"judged_jobs,omitempty" ch:"judged_jobs"`
	// Distinct configurations among them.
	JudgedSettings uint32 `json:"judged_settings,omitempty" ch:"judged_settings"`
	// Mean loss of the regressor per job.
	Loss *float64 `json:"loss,omitempty" ch:"loss"`
	// Mean loss of the competitor per job.
	RivalLoss *float64 `json:"rival_loss,omitempty" ch:"rival_loss"`
	// Lower end of the 95 % interval of loss - rival_loss, by a bootstrap over configurations.
	LossDifferenceLow *float64 `json:"loss_difference_low,omitempty" ch:"loss_difference_low"`
	// Upper end of that interval.
	LossDifferenceHigh *float64 `json:"loss_difference_high,omitempty" ch:"loss_difference_high"`
	// Share of jobs within the regressor's upper bound.
	CoverageRatio *float64 `json:"coverage_ratio,omitempty" ch:"coverage_ratio"`
	// Share of jobs within the competitor's upper bound.
	RivalCoverageRatio *float64 `json:"rival_coverage_ratio,omitempty" ch:"rival_coverage_ratio"`
	// Configurations for which only the regressor gives a bound.
	GainedSettings uint32 `json:"gained_settings,omitempty" ch:"gained_settings"`
	// Configurations for which only the competitor gives a bound.
	LostSettings uint32 `json:"lost_settings,omitempty" ch:"lost_settings"`
}

// Fitted describes the result of a fit.
type Fitted struct {
	// sha256 of the regressor, in hex.
	ModelDigest string `json:"model_digest" ch:"model_digest"`
	// sha256 of the manifest, in hex.
	ManifestDigest string `json:"manifest_digest" ch:"manifest_digest"`
	// Regressor family, such as "forest".
	Family string `json:"family" ch:"family"`
	// Number of examples.
	Examples uint64 `json:"examples" ch:"examples"`
	// Distinct configurations among them.
	Settings uint64 `json:"settings" ch:"settings"`
	// Out-of-fold error, grouped by configuration, in squared units of the target.
	MeanSquaredError float64 `json:"mean_squared_error" ch:"mean_squared_error"`
	// Error on held-out runs: median of |error| / truth. For the family "hierarchy" it is the mean,
	// and for accuracies the mean of |error|.
	MedianAbsoluteRatio float64 `json:"median_absolute_ratio" ch:"median_absolute_ratio"`
	// Out-of-fold coefficient of determination; absent for a constant target.
	R2 *float64 `json:"r2,omitempty" ch:"r2"`
	// Wall-clock time of the fit.
	FitSeconds float64 `json:"fit_seconds" ch:"fit_seconds"`
}

// familyHierarchy is the regressor family that predicts each model from its own runs.
const familyHierarchy = "hierarchy"

// FormatError returns the error of a regressor on held-out runs, which is
// Fitted.MedianAbsoluteRatio, as text: "median error 7.6 %", "mean error 2.1 %", or for accuracies
// "mean error 0.4 points". 0 means that no run was held out.
func FormatError(target, family string, e float64) string {
	statistic, unit := "median", "%"
	if family == familyHierarchy {
		statistic = "mean"
		if target == TargetAccuracy {
			unit = "points"
		}
	}
	if e == 0 {
		return statistic + " error unknown"
	}
	return statistic + " error " + strconv.FormatFloat(100*e, 'f', 1, 64) + " " + unit
}

// Trained is regressor.<target>.trained: a challenger was fitted. It is used only after its
// promotion; until then its predictions are compared with the champion's predictions.
type Trained struct {
	Stamp
	Target string `json:"target" ch:"target"`
	Fitted
	// Why it was fitted.
	Reason string `json:"reason" ch:"reason"`
	// sha256 of the champion at that time; absent if there was none.
	Rival string `json:"rival,omitempty" ch:"rival"`
	// Sequence in the stream JOB: the challenger is judged on jobs that begin after it.
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
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	return validateToken("target", e.Target)
}

// Fitting is regressor.<target>.fitting: the progress of a fit, sent over core NATS and not stored.
type Fitting struct {
	Stamp
	Target string `json:"target"`
	// Completed parts of the fit.
	Done uint32 `json:"done"`
	// All parts of the fit.
	Planned uint32 `json:"planned"`
	// Why it is fitted.
	Reason string `json:"reason"`
}

// Subject implements Event.
func (e *Fitting) Subject() string { return RegressorSubject(e.Target, EventFitting) }

// Validate implements Event.
func (e *Fitting) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	return validateToken("target", e.Target)
}

// Promoted is regressor.<target>.promoted: a regressor is the champion from now on.
type Promoted struct {
	Stamp
	Target string `json:"target" ch:"target"`
	// Revision of the champion's key.
	Revision uint64 `json:"revision" ch:"revision"`
	// sha256 of the regressor, in hex.
	ModelDigest string `json:"model_digest" ch:"model_digest"`
	// sha256 of the manifest, in hex.
	ManifestDigest string `json:"manifest_digest" ch:"manifest_digest"`
	// Regressor family, such as "forest".
	Family string `json:"family" ch:"family"`
	// Number of examples.
	Examples uint64 `json:"examples" ch:"examples"`
	// Distinct configurations among them.
	Settings uint64 `json:"settings" ch:"settings"`
	// Out-of-fold error, grouped by configuration, in squared units of the target.
	MeanSquaredError float64 `json:"mean_squared_error" ch:"mean_squared_error"`
	// Error on held-out runs: median of |error| / truth. For the family "hierarchy" it is the mean,
	// and for accuracies the mean of |error|.
	MedianAbsoluteRatio float64 `json:"median_absolute_ratio" ch:"median_absolute_ratio"`
	// Out-of-fold coefficient of determination; absent for a constant target.
	R2 *float64 `json:"r2,omitempty" ch:"r2"`
	// Wall-clock time of the fit.
	FitSeconds float64 `json:"fit_seconds" ch:"fit_seconds"`
	// Why it was promoted.
	Reason string `json:"reason" ch:"reason"`
	// "first", "growth", "test", "rollback" or "request"
	DecidedBy string `json:"decided_by,omitempty" ch:"decided_by"`
	// sha256 of the regressor that it replaced; absent if there was none.
	Rival string `json:"rival,omitempty" ch:"rival"`
	// Sequence in the stream JOB: jobs that begin after it were unknown at the time of the fit.
	SinceSequence uint64 `json:"since_sequence,omitempty" ch:"since_sequence"`
	Judgement
}

// PromotedID returns the identity of a promotion.
func PromotedID(target string, revision uint64) string {
	return fmt.Sprintf("%s/%d/promoted", target, revision)
}

// Subject implements Event.
func (e *Promoted) Subject() string { return RegressorSubject(e.Target, EventPromoted) }

// Validate implements Event.
func (e *Promoted) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	return validateToken("target", e.Target)
}

// Rejected is regressor.<target>.rejected: a regressor was not promoted.
type Rejected struct {
	Stamp
	Target string `json:"target" ch:"target"`
	// sha256 of the regressor, in hex.
	ModelDigest string `json:"model_digest" ch:"model_digest"`
	// Why it was rejected.
	Reason string `json:"reason" ch:"reason"`
	// sha256 of the champion; absent if the two were not compared.
	Rival string `json:"rival,omitempty" ch:"rival"`
	Judgement
}

// RejectedID returns the identity of a rejection.
func RejectedID(target, digest string) string {
	return fmt.Sprintf("%s/%s/rejected", target, digest)
}

// Subject implements Event.
func (e *Rejected) Subject() string { return RegressorSubject(e.Target, EventRejected) }

// Validate implements Event.
func (e *Rejected) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	return validateToken("target", e.Target)
}

// TrainRequest is regressor.train: fit now.
type TrainRequest struct {
	// Target to fit; absent: every target.
	Target string `json:"target,omitempty"`
	// Promote the result at once, without comparing it with the champion.
	Promote bool `json:"promote,omitempty"`
}

// Subject implements Request.
func (r *TrainRequest) Subject() string { return SubjectRegressorTrain }

// Validate implements Request.
func (r *TrainRequest) Validate() error { return validateTarget(r.Target, true) }

// validateTarget accepts the targets and, if all is true, "" for all of them.
func validateTarget(target string, all bool) error {
	switch {
	case target == "" && all, slices.Contains(Targets(), target):
		return nil
	case target == "":
		return Invalid("target", "missing, want one of %v", Targets())
	}
	return Invalid("target", "%q is not one of %v", clip(target), Targets())
}

// TrainReply is the reply to regressor.train.
type TrainReply struct {
	// Regressors that are now champions.
	Promoted []Promoted `json:"promoted"`
	// Challengers, which will be compared with the champions on new jobs.
	Trained []Trained `json:"trained,omitempty"`
	// Regressors that were not promoted.
	Rejected []Rejected `json:"rejected,omitempty"`
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

// Subject implements Request.
func (r *PromoteRequest) Subject() string { return SubjectRegressorPromote }

// Validate implements Request.
func (r *PromoteRequest) Validate() error {
	if err := validateTarget(r.Target, false); err != nil {
		return err
	}
	isHex := strings.Trim(r.ModelDigest, "0123456789abcdef") == ""
	if len(r.ModelDigest) < MinDigestDigits || len(r.ModelDigest) > 64 || !isHex {
		return Invalid("model_digest",
			"%q is not %d to 64 digits of a sha256 in hex; regressor.list shows them",
			clip(r.ModelDigest), MinDigestDigits)
	}
	return validateText("reason", r.Reason)
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
	if err := validateTarget(r.Target, false); err != nil {
		return err
	}
	return validateText("reason", r.Reason)
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
	RegressorTrained  = "trained"  // it is about to be promoted
	RegressorFormer   = "former"   // was champion before
	RegressorRejected = "rejected" // was worse than the champion, or is unusable
	RegressorUntried  = "untried"  // a newer challenger replaced it before the comparison
)

// RegressorVersion is a regressor and its history.
type RegressorVersion struct {
	Target string `json:"target"`
	Fitted
	// "champion", "challenger", "former", "rejected" or "untried"
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
