package policy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/policy"
)

func TestHull_IsConcaveAndAboveTheCurve(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var curve policy.Curve
		for k := range 1 + random.IntN(8) {
			curve = append(curve, policy.CurvePoint{Units: 1 << k, Rate: random.Float64() * 10})
		}
		hull := curve.Hull()
		for i := range hull {
			if hull.Slope(i) <= 0 || i > 0 && hull.Slope(i) > hull.Slope(i-1)+1e-12 {
				t.Fatalf("the hull %v of %v is not concave and rising", hull, curve)
			}
			if !slices.Contains(curve, hull[i]) {
				t.Fatalf("the hull %v has a point that %v does not have", hull, curve)
			}
		}
		for _, p := range curve {
			if hull.At(float64(p.Units)) < p.Rate-1e-9 {
				t.Fatalf("the hull %v of %v is below the point %v", hull, curve, p)
			}
		}
	}
}

func TestPause_DependsOnTheCharge(t *testing.T) {
	pause := policy.Pause{
		Base: 7 * time.Second, PerDoubling: 2 * time.Second, Restart: 47 * time.Second,
		RestartEvery: 60,
	}
	for _, test := range []struct {
		charge               policy.Charge
		isChanged, isRestart bool
		want                 float64
	}{
		{policy.ChargeAll, false, false, 15},
		{policy.ChargeAll, true, true, 62},
		{policy.ChargeRounds, false, false, 7},
		{policy.ChargeRounds, true, false, 15},
		{policy.ChargeRounds, false, true, 62},
		{policy.ChargeChanged, false, false, 0},
		{policy.ChargeChanged, true, false, 15},
		{policy.ChargeNone, true, true, 0},
	} {
		pause.Charge = test.charge
		got := pause.Seconds(8, test.isChanged, test.isRestart)
		if got != test.want {
			t.Errorf("%+v: %g seconds", test, got)
		}
	}
	pause.Charge = policy.ChargeAll
	if pause.Restarts(0) || pause.Restarts(59) || !pause.Restarts(60) {
		t.Error("want restarts at moment 60, not at 0 or 59")
	}
}

func TestCheckMoves_NamesTheBrokenRule(t *testing.T) {
	now := time.Unix(1000, 0)
	option := policy.Option{Work: 1, Curve: policy.Curve{{Units: 2, Rate: 1}, {Units: 8, Rate: 3}}}
	v := &policy.View{
		Now:        now,
		Units:      4,
		Jobs:       []policy.Job{{ID: "run", Units: 2, Options: []policy.Option{option}}},
		Queue:      []policy.Job{{ID: "wait", Options: []policy.Option{option}}},
		Slot:       time.Minute,
		Moments:    1,
		LastMoment: now.Add(-time.Hour),
	}
	move := func(kind policy.Kind, job string, units int) policy.Move {
		return policy.Move{Kind: kind, Job: job, Units: units, Reason: policy.ReasonShare}
	}
	for want, moves := range map[string][]policy.Move{
		"":                  {move(policy.Admit, "wait", 0), move(policy.Resize, "wait", 2)},
		"not admitted":      {move(policy.Resize, "wait", 2)},
		"not in the queue":  {move(policy.Refuse, "run", 0)},
		"not on its curve":  {move(policy.Resize, "run", 4)},
		"hold 8 of 4 units": {move(policy.Resize, "run", 8)},
		"holds 2 units":     {move(policy.Resize, "run", 2)},
		"resized twice":     {move(policy.Resize, "run", 0), move(policy.Resize, "run", 8)},
		"-2 units":          {move(policy.Resize, "run", -2)},
		"unknown kind":      {move("grow", "run", 2)},
		"missing reason":    {{Kind: policy.Refuse, Job: "wait"}},
		"option 1 of 1":     {{Kind: policy.Admit, Job: "wait", Option: 1, Reason: "x"}},
	} {
		wantBroken(t, checkMoves(v, moves), want)
	}

	v.LastMoment = now.Add(-time.Second)
	start := []policy.Move{move(policy.Admit, "wait", 0), move(policy.Resize, "wait", 2)}
	wantBroken(t, checkMoves(v, start), "want at least 1m0s")
	wantBroken(t, checkMoves(v, []policy.Move{move(policy.Resize, "run", 0)}), "")
	wantBroken(t, checkMoves(v, []policy.Move{{Kind: policy.Review, At: now}}), "review at")
}

func wantBroken(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %v, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one with %q", err, want)
	}
}
