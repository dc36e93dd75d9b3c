package main

import (
	"math"
	"testing"

	"courier/schemas"
)

func TestCrowdResult_Score(t *testing.T) {
	seconds := func(v float64) *float64 { return &v }
	var r crowdResult
	for i := range 40 {
		j := crowdJob{Decision: schemas.MeetsSLO, MeasuredSeconds: 10, PredictedSeconds: seconds(11), Met: i >= 2}
		if i >= 30 {
			j.Decision, j.PredictedSeconds, j.QuarterSeconds = schemas.BestEffort, nil, seconds(9.5)
		}
		r.Jobs = append(r.Jobs, j)
	}
	r.score()
	if r.Promised != 30 || r.Kept != 28 || math.Abs(r.KeptLow-0.7868) > 1e-4 || math.Abs(r.KeptHigh-0.9815) > 1e-4 {
		t.Errorf("kept %d of %d, %.4f to %.4f, want 28 of 30, 0.7868 to 0.9815", r.Kept, r.Promised, r.KeptLow, r.KeptHigh)
	}
	if math.Abs(r.SubmitError-0.1) > 1e-9 || math.Abs(r.QuarterError-0.05) > 1e-9 {
		t.Errorf("errors %.3f and %.3f, want 0.1 and 0.05", r.SubmitError, r.QuarterError)
	}
}
