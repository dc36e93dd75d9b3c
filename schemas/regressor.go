package schemas

import "fmt"

// Targets: what regressors predict.
const (
	TargetEpochTime = "epoch_time"   // seconds of one epoch
	TargetStartup   = "startup_time" // seconds from the start to the first epoch's begin
	TargetAccuracy  = "accuracy"     // after a number of epochs, 0 to 1
)

// Targets lists every target that is fitted.
func Targets() []string { return []string{TargetEpochTime, TargetStartup, TargetAccuracy} }

// Champion is the regressor in use for a target: the value of its key in the
// bucket of champions. Artifacts are immutable and named by their digest.
type Champion struct {
	Target         string `json:"target"`
	ModelDigest    string `json:"model_digest"`    // sha256 of the LightGBM text, in hex
	ManifestDigest string `json:"manifest_digest"` // sha256 of the manifest, in hex
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
	MedianAbsoluteRatio float64  `json:"median_absolute_ratio" ch:"median_absolute_ratio"` // median of |error| / truth, out of fold
	R2                  *float64 `json:"r2,omitempty" ch:"r2"`                             // out of fold; absent for a constant target
	FitSeconds          float64  `json:"fit_seconds" ch:"fit_seconds"`                     // wall-clock time of the fit
	Reason              string   `json:"reason" ch:"reason"`                               // why it was fitted
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
	Target string `json:"target,omitempty"` // absent: every target
}

// Subject implements Request.
func (r *TrainRequest) Subject() string { return SubjectRegressorTrain }

// Validate implements Request.
func (r *TrainRequest) Validate() error {
	if r.Target == "" {
		return nil
	}
	for _, t := range Targets() {
		if t == r.Target {
			return nil
		}
	}
	return Invalid("target", "%q is not one of %v", clip(r.Target), Targets())
}

// TrainReply says what a fit came to.
type TrainReply struct {
	Promoted []Promoted `json:"promoted"`          // regressors now in use
	Waiting  []string   `json:"waiting,omitempty"` // why a target was not fitted, in words
}
