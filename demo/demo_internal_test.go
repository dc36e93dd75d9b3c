package demo

import (
	"math"
	"reflect"
	"testing"

	"courier/schemas"
)

func TestOverlapResult_Score(t *testing.T) {
	seconds := func(v float64) *float64 { return &v }
	var r overlapResult
	for i := range 40 {
		j := overlapJob{
			Decision:         schemas.MeetsSLO,
			MeasuredSeconds:  10,
			PredictedSeconds: seconds(11),
			Met:              i >= 2,
		}
		if i >= 30 {
			j.Decision, j.PredictedSeconds, j.QuarterSeconds = schemas.BestEffort, nil, seconds(9.5)
		}
		r.Jobs = append(r.Jobs, j)
	}
	r.score()
	if r.Promised != 30 || r.Kept != 28 ||
		math.Abs(r.KeptLow-0.7868) > 1e-4 || math.Abs(r.KeptHigh-0.9815) > 1e-4 {
		t.Errorf("kept %d of %d, %.4f to %.4f, want 28 of 30, 0.7868 to 0.9815",
			r.Kept, r.Promised, r.KeptLow, r.KeptHigh)
	}
	if math.Abs(r.SubmitError-0.1) > 1e-9 || math.Abs(r.QuarterError-0.05) > 1e-9 {
		t.Errorf("errors %.3f and %.3f, want 0.1 and 0.05", r.SubmitError, r.QuarterError)
	}
}

func TestResponseTimes_NoiseAndTypicalTimes(t *testing.T) {
	m := responseTimes{
		designPoint{8, 1, 1}:  {math.Exp(1.1), math.Exp(1.3)},
		designPoint{64, 1, 1}: {math.Exp(0.1), math.Exp(0.1), math.Exp(0.4)},
	}
	if got, want := m.noise(), math.Sqrt((0.02+0.06)/3); math.Abs(got-want) > 1e-9 {
		t.Errorf("noise %.6f, want %.6f", got, want)
	}
	got := m.typical()
	for i, want := range []typicalTime{{64, math.Exp(0.2)}, {8, math.Exp(1.2)}} {
		if got[i].batch != want.batch || math.Abs(got[i].seconds-want.seconds) > 1e-9 {
			t.Errorf("typical time %d is %v, want %v", i, got[i], want)
		}
	}
}

func TestFastMiddleSlow(t *testing.T) {
	typical := []typicalTime{{128, 1}, {64, 1.1}, {32, 1.3}, {16, 2.1}, {8, 3}, {4, 4}}
	want := []typicalTime{{128, 1}, {16, 2.1}, {4, 4}}
	if got := fastMiddleSlow(typical); !reflect.DeepEqual(got, want) {
		t.Errorf("fastMiddleSlow = %v, want %v", got, want)
	}
}

func TestSLOResult_ScoreCountsAccuracyOfJobsThatMetTheirSLO(t *testing.T) {
	high, low := 0.9, 0.6
	r := sloResult{Jobs: []sloJob{
		{Decision: schemas.MeetsSLO, Met: true, MeasuredAccuracy: &high, RandomAccuracy: &high},
		{
			Decision:         schemas.MeetsSLO,
			MeasuredAccuracy: &high,
			RandomAccuracy:   &low,
			RandomMet:        true,
		},
		{Decision: schemas.BestEffort, Met: true, MeasuredAccuracy: &low, RandomMet: true},
	}}
	r.score()
	if r.Promised != 2 || r.Kept != 1 {
		t.Errorf("promised %d, kept %d, want 2 and 1", r.Promised, r.Kept)
	}
	if math.Abs(r.Value-0.5) > 1e-9 || math.Abs(r.RandomValue-0.2) > 1e-9 {
		t.Errorf("value %.3f, at random %.3f, want 0.5 and 0.2", r.Value, r.RandomValue)
	}
}
