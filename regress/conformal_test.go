package regress_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"courier/regress"
)

func startAdaptive(t *testing.T, random *rand.Rand) regress.Adaptive {
	t.Helper()
	c := regress.Calibration{Count: 200}
	for range 200 {
		c.Residuals = append(c.Residuals, 0.1*random.NormFloat64())
	}
	slices.Sort(c.Residuals)
	a, err := regress.NewAdaptive(c, 0.9, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// After everything takes 30 % longer the static bound holds never, the adaptive
// one again 9 times of 10.
func TestAdaptive_FollowsASuddenChange(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	a := startAdaptive(t, random)
	static, _ := a.Offset()
	held, staticHeld, outcomes := 0.0, 0.0, 2000.0
	for range int(outcomes) {
		residual := math.Log(1.3) + 0.1*random.NormFloat64()
		if offset, promised := a.Offset(); !promised || residual <= offset {
			held++
		}
		if residual <= static {
			staticHeld++
		}
		a = a.Next(residual)
	}
	if held/outcomes < 0.88 || held/outcomes > 0.92 {
		t.Errorf("the adaptive bound at 0.90 held %.3f of the time", held/outcomes)
	}
	if staticHeld/outcomes > 0.2 {
		t.Errorf("the static bound held %.3f of the time: the change is none", staticHeld/outcomes)
	}
	if got := float64(a.Outcomes-a.Missed) / outcomes; math.Abs(got-held/outcomes) > 1e-9 {
		t.Errorf("the state counts %.3f held, %.3f did", got, held/outcomes)
	}
	if len(a.Residuals) != regress.AdaptiveWindow {
		t.Errorf("%d residuals remembered", len(a.Residuals))
	}
}

func TestAdaptive_CannotPromiseAfterMisses(t *testing.T) {
	a := startAdaptive(t, rand.New(rand.NewPCG(8, 8)))
	steps := 0
	for residual := 10.0; ; residual *= 2 { // each worse than all before
		if _, promised := a.Offset(); !promised {
			break
		}
		if a, steps = a.Next(residual), steps+1; steps > 100 {
			t.Fatalf("100 misses, alpha is %g", a.Alpha)
		}
	}
	if offset, _ := a.Offset(); !math.IsInf(offset, 1) {
		t.Errorf("offset without promise = %g", offset)
	}
	for range 50 { // what cannot be promised is not missed: it recovers
		a = a.Next(0)
	}
	if _, promised := a.Offset(); !promised || a.Unpromised == 0 {
		t.Errorf("no promise after 50 good outcomes: alpha %g, %d unpromised", a.Alpha, a.Unpromised)
	}
}

func TestAdaptive_IsAPureFold(t *testing.T) {
	a := startAdaptive(t, rand.New(rand.NewPCG(8, 8)))
	before := slices.Clone(a.Residuals)
	one, other := a.Next(0.3).Next(-0.2), a.Next(0.3).Next(-0.2)
	if !reflect.DeepEqual(one, other) || !slices.Equal(before, a.Residuals) {
		t.Error("Next changes the state that it is called on")
	}
	b, err := json.Marshal(one)
	var read regress.Adaptive
	if err != nil || json.Unmarshal(b, &read) != nil || !reflect.DeepEqual(read, one) {
		t.Errorf("JSON changes the state (%v)", err)
	}
	if got := a.Next(math.NaN()); !reflect.DeepEqual(got, a) {
		t.Error("NaN changes the state")
	}
	for _, c := range []struct{ confidence, gamma float64 }{{0, 0}, {1, 0}, {0.9, -1}, {0.9, 1}, {math.NaN(), 0}} {
		if _, err := regress.NewAdaptive(regress.Calibration{}, c.confidence, c.gamma); !errors.Is(err, regress.ErrBadSettings) {
			t.Errorf("NewAdaptive(%g, %g) = %v", c.confidence, c.gamma, err)
		}
	}
}

func TestAdaptiveBound_StartsAtTheRegressors(t *testing.T) {
	_, p := forest(t, paperLike(192, 1), func() regress.ForestOptions { o := small(); o.Transform = regress.Log; return o }())
	point, err := p.Predict([]float64{64, 2, 3, 1, 6})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Manifest().Calibration
	c.Levels = nil
	a, err := regress.NewAdaptive(c, 0.9, 0)
	if err != nil {
		t.Fatal(err)
	}
	bound, promised := p.AdaptiveBound(point, a)
	offset, _ := a.Offset()
	if want := point.Value * math.Exp(offset); !promised || math.Abs(bound/want-1) > 1e-12 {
		t.Errorf("AdaptiveBound = %g (%v), want %g", bound, promised, want)
	}
	if r := p.Residual(point, bound); math.Abs(r-offset) > 1e-12 {
		t.Errorf("Residual at the bound = %g, want %g", r, offset)
	}
	point.Extrapolated, point.Distance = true, 1
	if wider, promised := p.AdaptiveBound(point, a); promised || wider <= bound {
		t.Errorf("beyond the examples: bound %g (%v)", wider, promised)
	}
}

func TestImportance_FindsWhatMatters(t *testing.T) {
	d := paperLike(192, 1)
	_, p := forest(t, d, small())
	shares, err := regress.Importance(p, d, 1)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for f, s := range shares {
		if sum += s; f > 0 && s > shares[0] {
			t.Errorf("%s matters more (%g) than the batch size (%g)", d.Features[f].Name, s, shares[0])
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("shares sum to %g", sum)
	}
	curve, err := regress.PartialDependence(p, d, 0, []float64{64, 128, 256, 512})
	if err != nil || !slices.IsSortedFunc(curve, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
		t.Errorf("PartialDependence = %g, %v, want a falling curve", curve, err)
	}
	if _, err := regress.PartialDependence(p, d, 0, []float64{math.NaN()}); !errors.Is(err, regress.ErrBadRow) {
		t.Errorf("PartialDependence of NaN = %v", err)
	}
}
