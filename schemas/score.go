package schemas

import (
	"encoding/json"
	"fmt"
	"math"
)

// ScoreRequest asks how promises came out: job.score. It has no fields.
type ScoreRequest struct{}

// Subject implements Request.
func (r *ScoreRequest) Subject() string { return SubjectJobScore }

// Validate implements Request.
func (r *ScoreRequest) Validate() error { return nil }

// Score is the public score: of the submissions with an SLO whose job ran as
// advised and ended by itself, how many kept it. A promise is an advice with the
// decision meets_slo.
type Score struct {
	Promises   ScoreLine   `json:"promises"`    // all of them
	Confidence []ScoreLine `json:"confidences"` // promises by the confidence asked for
	Users      []ScoreLine `json:"users"`       // promises by user, and confidence
	Models     []ScoreLine `json:"models"`      // promises by model and dataset, and confidence
	Decisions  []ScoreLine `json:"decisions"`   // all such submissions by decision, and confidence
	// Calibration holds all such submissions by the probability that was said of
	// what they ran with: where it is honest, as many kept their SLO.
	Calibration []CalibrationBin `json:"calibration"`
}

// ScoreLine counts the jobs of a group.
type ScoreLine struct {
	Name       string   `json:"name,omitempty"`       // of the user, model or decision; absent for all, or where there is none
	Dataset    string   `json:"dataset,omitempty"`    // of the model; absent where none was named
	Confidence *float64 `json:"confidence,omitempty"` // that was asked for, to four digits; absent for all
	Others     bool     `json:"others,omitempty"`     // groups beyond the most that are kept apart
	Tally
}

// CalibrationBin counts the jobs of a range of probabilities.
type CalibrationBin struct {
	FromProbability float64  `json:"from_probability"`           // the least
	ToProbability   float64  `json:"to_probability"`             // above the most; the last bin holds 1, too
	MeanProbability *float64 `json:"mean_probability,omitempty"` // of its jobs; absent without any
	Tally
}

// Tally counts jobs and how many of them kept their SLO.
type Tally struct {
	Jobs      uint64   `json:"jobs"`                 // that ran as advised and ended by themselves
	Kept      uint64   `json:"kept"`                 // of these
	KeptRatio *float64 `json:"kept_ratio,omitempty"` // kept / jobs; absent without jobs
	KeptLow   *float64 `json:"kept_low,omitempty"`   // its 95 % interval (Wilson 1927)
	KeptHigh  *float64 `json:"kept_high,omitempty"`

	// Cancelled and Lost are further jobs that ran as advised and did not end by themselves.
	// They are not among Jobs: nobody knows whether they would have kept their SLO.
	Cancelled uint64 `json:"cancelled"` // ended by a request
	Lost      uint64 `json:"lost"`      // silent for too long, and not back yet
}

// Add counts a job.
func (t *Tally) Add(kept bool) {
	t.Jobs++
	if kept {
		t.Kept++
	}
}

// WithRatio returns the tally with its ratio and interval.
func (t Tally) WithRatio() Tally {
	if t.Jobs > 0 {
		ratio := float64(t.Kept) / float64(t.Jobs)
		low, high := Wilson(t.Kept, t.Jobs)
		t.KeptRatio, t.KeptLow, t.KeptHigh = &ratio, &low, &high
	}
	return t
}

// Wilson returns the 95 % interval of a share (Wilson 1927); of is above 0.
func Wilson(hits, of uint64) (low, high float64) {
	const z = 1.959963984540054
	n, p := float64(of), float64(hits)/float64(of)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// Calibration counts jobs by the probability that was said of them. The zero
// value is ready.
type Calibration struct {
	bins [len(calibrationEdges) - 1]struct {
		Tally
		sum float64 // of probabilities
	}
}

// calibrationEdges are finer where promises are made.
var calibrationEdges = [...]float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}

// calibrationBin is the number of the bin of a probability.
func calibrationBin(probability float64) int {
	i := 0
	for i < len(calibrationEdges)-2 && probability >= calibrationEdges[i+1] {
		i++
	}
	return i
}

// CalibrationFrom returns the least probability of the bin of a probability.
func CalibrationFrom(probability float64) float64 {
	return calibrationEdges[calibrationBin(probability)]
}

// Add counts a job of which a probability was said, 0 to 1.
func (c *Calibration) Add(probability float64, kept bool) {
	i := calibrationBin(probability)
	c.bins[i].Tally.Add(kept)
	c.bins[i].sum += probability
}

// calibrationState is a bin as it is kept in a snapshot.
type calibrationState struct {
	Tally
	Sum float64 `json:"sum"` // of probabilities
}

// MarshalJSON writes the counts, so that they can be read back exactly.
func (c *Calibration) MarshalJSON() ([]byte, error) {
	var all [len(c.bins)]calibrationState
	for i, b := range c.bins {
		all[i] = calibrationState{b.Tally, b.sum}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads the counts that MarshalJSON wrote.
func (c *Calibration) UnmarshalJSON(data []byte) error {
	var all []calibrationState
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if len(all) != len(c.bins) {
		return fmt.Errorf("calibration has %d bins, want %d", len(all), len(c.bins))
	}
	for i, b := range all {
		c.bins[i].Tally, c.bins[i].sum = b.Tally, b.Sum
	}
	return nil
}

// Tally returns the counts of the bin of a probability.
func (c *Calibration) Tally(probability float64) *Tally {
	return &c.bins[calibrationBin(probability)].Tally
}

// Bins returns every bin, in order.
func (c *Calibration) Bins() []CalibrationBin {
	all := make([]CalibrationBin, len(c.bins))
	for i, b := range c.bins {
		all[i] = CalibrationBin{FromProbability: calibrationEdges[i], ToProbability: calibrationEdges[i+1], Tally: b.WithRatio()}
		if b.Jobs > 0 {
			mean := b.sum / float64(b.Jobs)
			all[i].MeanProbability = &mean
		}
	}
	return all
}
