package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// Request is the body of a request.
type Request interface {
	Subject() string
	Validate() error
}

// DecodeRequest reads a request strictly: an unknown field, a second value or a
// value out of range is an *Error with CodeInvalid that names the field. The request
// is empty before.
func DecodeRequest(data []byte, r Request) error {
	if len(data) > MaxMessageBytes {
		return Invalid("", "%d bytes are more than the %d of the largest request", len(data), MaxMessageBytes)
	}
	if q, is := r.(*JobRequest); is {
		if plain, ok := readJobRequest(data); ok {
			*q = plain
			return q.Validate()
		}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return Invalid("", "the JSON ends too early")
		}
		return jsonError(err)
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return Invalid("", "more than one JSON value")
	}
	return r.Validate()
}

// CPUs is a list of CPU counts to choose from. JSON may give one number; it is
// always written as a list.
type CPUs []int

// UnmarshalJSON reads a number or a list of numbers.
func (c *CPUs) UnmarshalJSON(b []byte) error {
	if one, err := strconv.Atoi(string(b)); err == nil {
		*c = CPUs{one}
		return nil
	}
	var list []int
	if err := json.Unmarshal(b, &list); err != nil {
		return Invalid("cpus", "want a whole number or a list of them, such as 2 or [1,2,4]")
	}
	*c = list
	return nil
}

// Weights of the score that decides where no SLO is given. They are shares of 1.
type Weights struct {
	Accuracy float64 `json:"accuracy"` // weight of accuracy / largest, 0 to 1
	Time     float64 `json:"time"`     // weight of 1 - time / longest, 0 to 1
}

// Limits of a job request. They are far above what is sensible, and exist so
// that an absurd number is refused instead of being computed with.
const (
	MaxCandidates = 64 // batch sizes times CPU counts
	MaxBatchSize  = 1 << 24
	MaxCPUs       = 1 << 16
	MaxEpochs     = 1_000_000
	MaxSLO        = 366 * day
	maxText       = 256
	maxLabels     = 64
)

// JobRequest asks for a job: job.submit records it, job.predict only answers.
type JobRequest struct {
	JobID           string            `json:"id,omitempty"`               // [a-z0-9_-]{1,64}; made by the advisor if absent
	Model           string            `json:"model"`                      // name of what is trained, 1 to 256 characters
	Dataset         string            `json:"dataset,omitempty"`          // name of the training data: runs on another dataset are no evidence; absent is a dataset of its own
	Parameters      uint64            `json:"parameters,omitempty"`       // weights of the network; absent if unknown
	Layers          uint32            `json:"layers,omitempty"`           // layers of the network; absent if unknown
	TrainingSamples uint64            `json:"training_samples,omitempty"` // samples in one epoch; absent if unknown
	CPUs            CPUs              `json:"cpus"`                       // CPU counts to choose from; one number may be given
	BatchSizes      []int             `json:"batch_sizes,omitempty"`      // candidates; default 64, 128, 256, 512
	Epochs          int               `json:"epochs,omitempty"`           // passes over the data; absent: chosen, see max_epochs and target_accuracy
	MaxEpochs       int               `json:"max_epochs,omitempty"`       // most passes over the data where epochs are chosen; default 100
	TargetAccuracy  float64           `json:"target_accuracy,omitempty"`  // where epochs are chosen: enough is an accuracy of this, 0 to 1
	SLO             Duration          `json:"slo,omitempty"`              // from submission to the end of the last epoch; absent: the weights decide
	Weights         *Weights          `json:"weights,omitempty"`          // without slo only; default 0.5 each
	Confidence      float64           `json:"confidence,omitempty"`       // of meeting the SLO, between 0 and 1; default 0.95
	Promise         Promise           `json:"promise,omitempty"`          // what the confidence is of: each promise, or the mean of all; default: the cluster's setting
	Nodes           []string          `json:"nodes,omitempty"`            // nodes it runs on; absent: the least loaded that fits
	User            string            `json:"user,omitempty"`             // who asks
	Labels          map[string]string `json:"labels,omitempty"`           // the user's tags
}

// Promise says what a confidence is of.
type Promise string

// The promises.
const (
	PromiseEach Promise = "each" // this one: its own probability is at least the confidence
	PromiseMean Promise = "mean" // all that ask for the same: on average they are kept as often as the confidence says
)

// Subject implements Request.
func (r *JobRequest) Subject() string { return SubjectJobSubmit }

// DefaultBatchSizes are the candidates of a request that names none; they are
// those of the paper (Courier, ICPE 2021, Table 1).
func DefaultBatchSizes() []int { return []int{64, 128, 256, 512} }

// DefaultConfidence is the confidence of a request that names none.
const DefaultConfidence = 0.95

// DefaultMaxEpochs bounds the epochs of a request that lets them be chosen.
const DefaultMaxEpochs = 100

// WithDefaults returns the request with every optional field that has a default filled in.
func (r JobRequest) WithDefaults() JobRequest {
	if len(r.BatchSizes) == 0 {
		r.BatchSizes = DefaultBatchSizes()
	}
	if r.Confidence == 0 {
		r.Confidence = DefaultConfidence
	}
	if r.Epochs == 0 && r.MaxEpochs == 0 {
		r.MaxEpochs = DefaultMaxEpochs
	}
	if r.SLO == 0 && r.Weights == nil {
		r.Weights = &Weights{Accuracy: 0.5, Time: 0.5}
	}
	return r
}

// Validate implements Request.
func (r *JobRequest) Validate() error {
	if r.JobID != "" {
		if err := validateToken("id", r.JobID); err != nil {
			return err
		}
	}
	if r.Model == "" {
		return Invalid("model", "is missing: the name of what is trained")
	}
	if err := r.validateTexts(); err != nil {
		return err
	}
	if err := validateCounts("cpus", r.CPUs, MaxCPUs); err != nil {
		return err
	}
	if len(r.CPUs) == 0 {
		return Invalid("cpus", "is missing: a number of CPUs, or a list to choose from")
	}
	if err := validateCounts("batch_sizes", r.BatchSizes, MaxBatchSize); err != nil {
		return err
	}
	if n := len(r.CPUs) * max(len(r.BatchSizes), 1); n > MaxCandidates {
		return Invalid("batch_sizes", "%d batch sizes and CPU counts together are more than %d candidates", n, MaxCandidates)
	}
	if err := r.validateEpochs(); err != nil {
		return err
	}
	return r.validateGoal()
}

// validateEpochs accepts a number of epochs, or what it is to be chosen by.
func (r *JobRequest) validateEpochs() error {
	free := r.MaxEpochs != 0 || r.TargetAccuracy != 0
	switch {
	case r.Epochs == 0 && !free:
		return Invalid("epochs", "is missing: a number, or max_epochs or target_accuracy to have it chosen")
	case r.Epochs < 0 || r.Epochs > MaxEpochs:
		return Invalid("epochs", "%d is not between 1 and %d", r.Epochs, MaxEpochs)
	case r.Epochs > 0 && free:
		return Invalid("epochs", "are fixed: leave out max_epochs and target_accuracy, or leave out epochs to have them chosen")
	case r.MaxEpochs < 0 || r.MaxEpochs > MaxEpochs:
		return Invalid("max_epochs", "%d is not between 1 and %d", r.MaxEpochs, MaxEpochs)
	case !(r.TargetAccuracy >= 0 && r.TargetAccuracy <= 1):
		return Invalid("target_accuracy", "%v is not between 0 and 1", r.TargetAccuracy)
	}
	return nil
}

// validateGoal checks what the job is to reach.
func (r *JobRequest) validateGoal() error {
	if r.SLO < 0 || time.Duration(r.SLO) > MaxSLO {
		return Invalid("slo", "%s is not between 1ns and %s", time.Duration(r.SLO), MaxSLO)
	}
	if math.IsNaN(r.Confidence) || r.Confidence < 0 || r.Confidence >= 1 {
		return Invalid("confidence", "%v is not between 0 and 1", r.Confidence)
	}
	if r.Promise != "" && r.Promise != PromiseEach && r.Promise != PromiseMean {
		return Invalid("promise", "%q is not each or mean", clip(string(r.Promise)))
	}
	if w := r.Weights; w != nil {
		if r.SLO != 0 {
			return Invalid("weights", "decide only where no slo is given")
		}
		if !(w.Accuracy >= 0 && w.Time >= 0 && w.Accuracy <= 1 && w.Time <= 1 && w.Accuracy+w.Time > 0) {
			return Invalid("weights", "want two shares between 0 and 1, not both 0")
		}
	}
	return nil
}

func (r *JobRequest) validateTexts() error {
	for _, f := range []struct{ name, value string }{{"model", r.Model}, {"dataset", r.Dataset}, {"user", r.User}} {
		if err := validateText(f.name, f.value); err != nil {
			return err
		}
	}
	if len(r.Labels) > maxLabels {
		return Invalid("labels", "%d are more than %d", len(r.Labels), maxLabels)
	}
	for k, v := range r.Labels {
		if k == "" || validateText("labels", k) != nil || validateText("labels", v) != nil {
			return Invalid("labels", "%q: want names and values of printable text, at most %d bytes", clip(k), maxText)
		}
	}
	return validateNodes(r.Nodes)
}

func validateNodes(nodes []string) error {
	if len(nodes) > MaxCandidates {
		return Invalid("nodes", "%d are more than %d", len(nodes), MaxCandidates)
	}
	for _, n := range nodes {
		if err := validateToken("nodes", n); err != nil {
			return err
		}
	}
	return nil
}

// validateText accepts printable text of at most maxText bytes.
func validateText(field, s string) error {
	if len(s) > maxText {
		return Invalid(field, "%d bytes are more than %d", len(s), maxText)
	}
	for _, c := range s {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return Invalid(field, "%q holds a character that is not printable text", clip(s))
		}
	}
	return nil
}

// validateCounts accepts distinct numbers from 1 to limit.
func validateCounts(field string, list []int, limit int) error {
	if len(list) > MaxCandidates {
		return Invalid(field, "%d values are more than %d", len(list), MaxCandidates)
	}
	for i, n := range list {
		if n < 1 || n > limit {
			return Invalid(field, "%d is not between 1 and %d", n, limit)
		}
		for _, m := range list[:i] {
			if m == n {
				return Invalid(field, "%d is given twice", n)
			}
		}
	}
	return nil
}
