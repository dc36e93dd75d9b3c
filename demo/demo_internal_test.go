package demo

import (
	"math"
	"reflect"
	"testing"

	"courier/schemas"
)

func TestResponseTimes_NoiseAndTypicalTimes(t *testing.T) {
	m := responseTimes{
		8:  {math.Exp(1.1), math.Exp(1.3)},
		64: {math.Exp(0.1), math.Exp(0.1), math.Exp(0.4)},
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

func TestResult_ScoreCountsAccuracyOfJobsThatMetTheirSLO(t *testing.T) {
	high, low := 0.9, 0.6
	r := Result{Jobs: []sloJob{
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
