package schemas

import (
	"cmp"
	"math"
	"time"
)

// ScoreRequest is job.score: report the SLO attainment of the ended jobs that the advisor remembers.
type ScoreRequest struct {
	Since time.Time `json:"since,omitzero"`  // only jobs that ended at or after this instant
	Until time.Time `json:"until,omitzero"`  // only jobs that ended before this instant
	User  string    `json:"user,omitempty"`  // only jobs of this user
	Model string    `json:"model,omitempty"` // only jobs of this model
}

// Subject implements Request.
func (r *ScoreRequest) Subject() string { return SubjectJobScore }

// Validate implements Request.
func (r *ScoreRequest) Validate() error {
	if !r.Until.IsZero() && !r.Since.Before(r.Until) {
		return Invalid("until", "is not after since")
	}
	return cmp.Or(
		validateLength("user", len(r.User), MaxSearchBytes),
		validateLength("model", len(r.Model), MaxSearchBytes),
	)
}

// Score reports the SLO attainment of the submissions with an SLO whose job ran as advised and
// ended by itself. A promise is an advice with the decision meets_slo.
type Score struct {
	// All promises.
	Promises ScoreLine `json:"promises"`
	// Promises by requested confidence.
	Confidence []ScoreLine `json:"confidences"`
	// Promises by user and confidence.
	Users []ScoreLine `json:"users"`
	// Promises by model, dataset and confidence.
	Models []ScoreLine `json:"models"`
	// All such submissions by decision and confidence.
	Decisions []ScoreLine `json:"decisions"`
	// All such submissions by the predicted probability of the configuration that was run. With
	// calibrated probabilities the SLO attainment of each range lies in the range.
	Calibration []CalibrationBin `json:"calibration"`
	// Earliest end of a job that the advisor remembers; older jobs are not counted. Absent if no job
	// has ended.
	From *time.Time `json:"from,omitempty"`
	// Promises in equal steps of the time, oldest first.
	Trend []ScoreStep `json:"trend,omitempty"`
}

// ScoreStep counts the promises of the jobs that ended in a part of a period.
type ScoreStep struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Tally
}

// ScoreLine counts the jobs of a group.
type ScoreLine struct {
	// User, model or decision; absent for the line of all promises and for an unnamed user.
	Name string `json:"name,omitempty"`
	// Dataset of the model; absent if the requests have none.
	Dataset string `json:"dataset,omitempty"`
	// Requested confidence, to four digits; absent for the line of all promises.
	Confidence *float64 `json:"confidence,omitempty"`
	// True for the line that sums all groups beyond the maximum number of groups.
	Others bool `json:"others,omitempty"`
	Tally
}

// CalibrationBin counts the jobs of a range of probabilities.
type CalibrationBin struct {
	// Lower end of the range, inclusive.
	FromProbability float64 `json:"from_probability"`
	// Upper end of the range, exclusive; inclusive in the last bin.
	ToProbability float64 `json:"to_probability"`
	// Mean probability of the jobs; absent without jobs.
	MeanProbability *float64 `json:"mean_probability,omitempty"`
	Tally
}

// Tally counts jobs and how many of them met their SLO.
type Tally struct {
	// Jobs that ran as advised and ended by themselves.
	Jobs uint64 `json:"jobs"`
	// Jobs among them that met their SLO.
	Kept uint64 `json:"kept"`
	// Kept divided by jobs; absent without jobs.
	KeptRatio *float64 `json:"kept_ratio,omitempty"`
	// Lower end of the 95 % interval of the ratio (Wilson 1927).
	KeptLow *float64 `json:"kept_low,omitempty"`
	// Upper end of that interval.
	KeptHigh *float64 `json:"kept_high,omitempty"`

	// Further jobs that ran as advised and were cancelled. Cancelled, lost and incomplete jobs are
	// not among the jobs above, because it is unknown whether they would have met their SLO.
	Cancelled uint64 `json:"cancelled"`
	// Further jobs that ran as advised and are lost.
	Lost uint64 `json:"lost"`
	// Further jobs that ran as advised and finished before their deadline with fewer epochs than
	// they should have, or without recognized epochs.
	Incomplete uint64 `json:"incomplete"`
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

// Wilson returns the 95 % interval of the share hits / of (Wilson 1927); of must not be 0.
func Wilson(hits, of uint64) (low, high float64) {
	const z = 1.959963984540054
	n, p := float64(of), float64(hits)/float64(of)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// Calibration counts jobs by their predicted probability. The zero value is ready to use.
type Calibration [len(calibrationEdges) - 1]struct {
	Tally
	Sum float64 `json:"sum"` // of probabilities
}

// calibrationEdges are the limits of the bins. Bins are narrower near common confidences.
var calibrationEdges = [...]float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}

// calibrationBin returns the index of the bin of a probability.
func calibrationBin(probability float64) int {
	i := 0
	for i < len(calibrationEdges)-2 && probability >= calibrationEdges[i+1] {
		i++
	}
	return i
}

// CalibrationFrom returns the lower end of the bin of a probability.
func CalibrationFrom(probability float64) float64 {
	return calibrationEdges[calibrationBin(probability)]
}

// Add counts a job with a predicted probability, 0 to 1.
func (c *Calibration) Add(probability float64, kept bool) {
	i := calibrationBin(probability)
	c[i].Tally.Add(kept)
	c[i].Sum += probability
}

// Tally returns the counts of the bin of a probability.
func (c *Calibration) Tally(probability float64) *Tally {
	return &c[calibrationBin(probability)].Tally
}

// Bins returns every bin, in order.
func (c *Calibration) Bins() []CalibrationBin {
	all := make([]CalibrationBin, len(c))
	for i, b := range c {
		all[i] = CalibrationBin{
			FromProbability: calibrationEdges[i],
			ToProbability:   calibrationEdges[i+1],
			Tally:           b.WithRatio(),
		}
		if b.Jobs > 0 {
			all[i].MeanProbability = new(b.Sum / float64(b.Jobs))
		}
	}
	return all
}
