package schemas

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Targets: what regressors predict.
const (
	TargetEpochTime = "epoch_time"   // seconds of one epoch
	TargetStartup   = "startup_time" // seconds from the start to the first epoch's begin
	TargetAccuracy  = "accuracy"     // after a number of epochs, 0 to 1
)

// Targets lists every target that is fitted.
func Targets() []string { return []string{TargetEpochTime, TargetStartup, TargetAccuracy} }

// Champion is the regressor in use for a target: the value of its key in the
// bucket of champions. Artifacts are immutable and named by their digest. How it
// came to be so stands beside it, for whoever has to repeat its event.
type Champion struct {
	Target         string  `json:"target"`
	ModelDigest    string  `json:"model_digest"`    // sha256 of the LightGBM text, in hex
	ManifestDigest string  `json:"manifest_digest"` // sha256 of the manifest, in hex
	FitSeconds     float64 `json:"fit_seconds"`     // wall-clock time of its fit
	Grounds
}

// Who or what decides that a regressor is put in use.
const (
	DecidedFirst    = "first"    // there was none before
	DecidedGrowth   = "growth"   // it answers what the champion cannot, and all that the champion can
	DecidedTest     = "test"     // it was better on jobs that neither had learnt from
	DecidedRollback = "rollback" // the champion before was better on jobs that neither had learnt from
	DecidedRequest  = "request"  // somebody asked for it
)

// Grounds say why a regressor was put in use, or was not.
type Grounds struct {
	Reason        string `json:"reason" ch:"reason"`                           // in words
	DecidedBy     string `json:"decided_by,omitempty" ch:"decided_by"`         // "first", "growth", "test", "rollback" or "request"
	Rival         string `json:"rival,omitempty" ch:"rival"`                   // sha256 of the model that it was judged against; absent if there was none
	SinceSequence uint64 `json:"since_sequence,omitempty" ch:"since_sequence"` // of the JOB stream: jobs that begin after it were not known then
	Judgement
}

// Judgement compares a regressor with its rival on the same jobs, that neither
// had learnt from. Losses are the mean of two pinball losses, of the prediction
// (level 0.5), by which settings are chosen, and of the bound at a level, which is
// promised; of log seconds for times. The smaller the better. What is not known is
// absent.
type Judgement struct {
	JudgedLevel        float64  `json:"judged_level,omitempty" ch:"judged_level"`                 // of the bound, 0 to 1
	JudgedJobs         uint32   `json:"judged_jobs,omitempty" ch:"judged_jobs"`                   // that both could predict
	JudgedSettings     uint32   `json:"judged_settings,omitempty" ch:"judged_settings"`           // distinct ones among them
	Loss               *float64 `json:"loss,omitempty" ch:"loss"`                                 // of the regressor, mean over jobs
	RivalLoss          *float64 `json:"rival_loss,omitempty" ch:"rival_loss"`                     // of its rival
	LossDifferenceLow  *float64 `json:"loss_difference_low,omitempty" ch:"loss_difference_low"`   // of loss - rival loss: 95 % interval, by a bootstrap over settings
	LossDifferenceHigh *float64 `json:"loss_difference_high,omitempty" ch:"loss_difference_high"` //
	CoverageRatio      *float64 `json:"coverage_ratio,omitempty" ch:"coverage_ratio"`             // share of jobs that took no longer than its bound
	RivalCoverageRatio *float64 `json:"rival_coverage_ratio,omitempty" ch:"rival_coverage_ratio"` // the same of its rival
	GainedSettings     uint32   `json:"gained_settings,omitempty" ch:"gained_settings"`           // that it can promise for, and its rival cannot
	LostSettings       uint32   `json:"lost_settings,omitempty" ch:"lost_settings"`               // that its rival can promise for, and it cannot
}

// Fitted says what a fit came to.
type Fitted struct {
	ModelDigest         string   `json:"model_digest" ch:"model_digest"`                   // sha256, in hex
	ManifestDigest      string   `json:"manifest_digest" ch:"manifest_digest"`             // sha256, in hex
	Family              string   `json:"family" ch:"family"`                               // such as "forest"
	Examples            uint64   `json:"examples" ch:"examples"`                           // it was fitted on
	Settings            uint64   `json:"settings" ch:"settings"`                           // distinct settings among them
	MeanSquaredError    float64  `json:"mean_squared_error" ch:"mean_squared_error"`       // out of fold, grouped by setting, in squared units of the target
	MedianAbsoluteRatio float64  `json:"median_absolute_ratio" ch:"median_absolute_ratio"` // error on held-out runs: the median of |error| / truth; by evidence its mean, of accuracies that of |error|
	R2                  *float64 `json:"r2,omitempty" ch:"r2"`                             // out of fold; absent for a constant target
	FitSeconds          float64  `json:"fit_seconds" ch:"fit_seconds"`                     // wall-clock time of the fit
}

// Trained is regressor.<target>.trained: a challenger was fitted. It is in use
// only once it is promoted; until then it predicts in the shadow of the champion.
type Trained struct {
	Stamp
	Target string `json:"target" ch:"target"`
	Fitted
	Reason        string `json:"reason" ch:"reason"`                 // why it was fitted
	Rival         string `json:"rival,omitempty" ch:"rival"`         // sha256 of the champion's model at that time; absent if there was none
	SinceSequence uint64 `json:"since_sequence" ch:"since_sequence"` // of the JOB stream: it is judged on jobs that begin after it
}

// TrainedID returns the identity of a fit: the same bytes may be fitted again.
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

// Fitting is regressor.<target>.fitting: how far a fit has come, over core NATS,
// not stored.
type Fitting struct {
	Stamp
	Target  string `json:"target"`
	Done    uint32 `json:"done"`    // parts of the fit that are done
	Planned uint32 `json:"planned"` // all its parts
	Reason  string `json:"reason"`  // why it is fitted
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

// Promoted is regressor.<target>.promoted: a regressor is in use from now on.
type Promoted struct {
	Stamp
	Target              string   `json:"target" ch:"target"`
	Revision            uint64   `json:"revision" ch:"revision"`                           // of the champion's key
	ModelDigest         string   `json:"model_digest" ch:"model_digest"`                   // sha256, in hex
	ManifestDigest      string   `json:"manifest_digest" ch:"manifest_digest"`             // sha256, in hex
	Family              string   `json:"family" ch:"family"`                               // such as "forest"
	Examples            uint64   `json:"examples" ch:"examples"`                           // it was fitted on
	Settings            uint64   `json:"settings" ch:"settings"`                           // distinct settings among them
	MeanSquaredError    float64  `json:"mean_squared_error" ch:"mean_squared_error"`       // out of fold, grouped by setting, in squared units of the target
	MedianAbsoluteRatio float64  `json:"median_absolute_ratio" ch:"median_absolute_ratio"` // error on held-out runs: the median of |error| / truth; by evidence its mean, of accuracies that of |error|
	R2                  *float64 `json:"r2,omitempty" ch:"r2"`                             // out of fold; absent for a constant target
	FitSeconds          float64  `json:"fit_seconds" ch:"fit_seconds"`                     // wall-clock time of the fit
	Reason              string   `json:"reason" ch:"reason"`                               // why it was put in use
	DecidedBy           string   `json:"decided_by,omitempty" ch:"decided_by"`             // "first", "growth", "test", "rollback" or "request"
	Rival               string   `json:"rival,omitempty" ch:"rival"`                       // sha256 of the model that it replaced; absent if there was none
	SinceSequence       uint64   `json:"since_sequence,omitempty" ch:"since_sequence"`     // of the JOB stream: jobs that begin after it were not known then
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

// Rejected is regressor.<target>.rejected: a regressor was not taken into use.
type Rejected struct {
	Stamp
	Target      string `json:"target" ch:"target"`
	ModelDigest string `json:"model_digest" ch:"model_digest"` // sha256, in hex
	Reason      string `json:"reason" ch:"reason"`
	Rival       string `json:"rival,omitempty" ch:"rival"` // sha256 of the champion's model; absent if it was not judged
	Judgement
}

// RejectedID returns the identity of a rejection.
func RejectedID(target, digest string) string { return fmt.Sprintf("%s/%s/rejected", target, digest) }

// Subject implements Event.
func (e *Rejected) Subject() string { return RegressorSubject(e.Target, EventRejected) }

// Validate implements Event.
func (e *Rejected) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	return validateToken("target", e.Target)
}

// TrainRequest asks the trainer to fit now: regressor.train.
type TrainRequest struct {
	Target  string `json:"target,omitempty"`  // absent: every target
	Promote bool   `json:"promote,omitempty"` // put in use at once, without being judged
}

// Subject implements Request.
func (r *TrainRequest) Subject() string { return SubjectRegressorTrain }

// Validate implements Request.
func (r *TrainRequest) Validate() error { return validateTarget(r.Target, true) }

// validateTarget accepts the targets, and "" for all of them.
func validateTarget(target string, all bool) error {
	switch {
	case target == "" && all, slices.Contains(Targets(), target):
		return nil
	case target == "":
		return Invalid("target", "is missing: one of %v", Targets())
	}
	return Invalid("target", "%q is not one of %v", clip(target), Targets())
}

// TrainReply says what a fit came to.
type TrainReply struct {
	Promoted []Promoted `json:"promoted"`           // regressors now in use
	Trained  []Trained  `json:"trained,omitempty"`  // challengers, to be judged on the jobs that come
	Rejected []Rejected `json:"rejected,omitempty"` // regressors that are not taken into use
	Waiting  []string   `json:"waiting,omitempty"`  // why a target was not fitted, in words
}

// PromoteRequest puts a regressor in use that was fitted before:
// regressor.promote. The reply is the event promoted.
type PromoteRequest struct {
	Target      string `json:"target"`
	ModelDigest string `json:"model_digest"`     // sha256, in hex: all of it, or at least 6 digits that only one has
	Reason      string `json:"reason,omitempty"` // why, in words, for the record
}

// MinDigestDigits are the fewest digits by which a regressor can be named.
const MinDigestDigits = 6

// Subject implements Request.
func (r *PromoteRequest) Subject() string { return SubjectRegressorPromote }

// Validate implements Request.
func (r *PromoteRequest) Validate() error {
	if err := validateTarget(r.Target, false); err != nil {
		return err
	}
	if len(r.ModelDigest) < MinDigestDigits || len(r.ModelDigest) > 64 || strings.Trim(r.ModelDigest, "0123456789abcdef") != "" {
		return Invalid("model_digest", "%q is not %d to 64 digits of a sha256 in hex; regressor.list shows them", clip(r.ModelDigest), MinDigestDigits)
	}
	return validateText("reason", r.Reason)
}

// RollbackRequest puts the champion before in use again: regressor.rollback. The
// reply is the event promoted.
type RollbackRequest struct {
	Target string `json:"target"`
	Reason string `json:"reason,omitempty"` // why, in words, for the record
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

// RegressorListRequest asks for the regressors: regressor.list.
type RegressorListRequest struct {
	Target string `json:"target,omitempty"` // absent: of every target
}

// Subject implements Request.
func (r *RegressorListRequest) Subject() string { return SubjectRegressorList }

// Validate implements Request.
func (r *RegressorListRequest) Validate() error { return validateTarget(r.Target, true) }

// What a regressor is.
const (
	RegressorChampion   = "champion"   // in use
	RegressorChallenger = "challenger" // predicts in the shadow, to be judged
	RegressorFormer     = "former"     // was in use
	RegressorRejected   = "rejected"   // was judged, or could not be used
	RegressorUntried    = "untried"    // another was fitted before it could be judged
)

// RegressorVersion is a regressor and what became of it.
type RegressorVersion struct {
	Target string `json:"target"`
	Fitted
	State      string    `json:"state"`                // "champion", "challenger", "former", "rejected" or "untried"
	Kept       bool      `json:"kept"`                 // its files are there: it can be promoted
	TrainedAt  time.Time `json:"trained_at"`           //
	TrainedFor string    `json:"trained_for"`          // why it was fitted, in words
	PromotedAt time.Time `json:"promoted_at,omitzero"` // when it was put in use last; absent if it never was
	ReplacedAt time.Time `json:"replaced_at,omitzero"` // when another was put in use instead; absent if none was
	RejectedAt time.Time `json:"rejected_at,omitzero"` // absent if it was not
	Revision   uint64    `json:"revision,omitempty"`   // of the champion's key, when it was put in use last
	Grounds
	Corrections []*Drift `json:"corrections,omitempty"` // for drift, that are part of what is in use, by their begin
}

// RegressorList is the reply to regressor.list.
type RegressorList struct {
	Regressors []RegressorVersion `json:"regressors"` // by target; the newest first
}
