package trainer_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/trainer"
)

// drifting returns a function that draws standardized residuals, before or after a change.
func drifting(seed uint64, change, noise float64) func(changed bool) float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(changed bool) float64 {
		z := random.NormFloat64()
		if changed {
			z += math.Log1p(change) / noise
		}
		return z
	}
}

// delayCases are the maximum delays, in jobs.
var delayCases = []struct {
	change, noise float64
	most          int
}{{0.10, 0.05, 10}, {0.30, 0.05, 3}, {0.10, 0.15, 55}, {0.30, 0.15, 12}, {-0.25, 0.05, 3}}

func TestPageHinkley_DetectsChanges(t *testing.T) {
	for _, c := range delayCases {
		var delays, errors []int
		for seed := range uint64(201) {
			var p trainer.PageHinkley
			draw := drifting(seed, c.change, c.noise)
			for i := range 100 {
				p.Add(draw(false), i)
			}
			for i := 100; ; i++ {
				p.Add(draw(true), i)
				if first, _, alarm := p.Alarm(14); alarm {
					delays, errors = append(delays, i-99), append(errors, max(first-100, 100-first))
					break
				}
			}
		}
		slices.Sort(delays)
		slices.Sort(errors)
		if got := delays[100]; got > c.most {
			t.Errorf("a change of %+.2f at noise %.2f is detected after %d jobs, want at most %d",
				c.change, c.noise, got, c.most)
		}
		if got := errors[100]; got > c.most/4+1 {
			t.Errorf("a change of %+.2f at noise %.2f: estimated begin is wrong by %d jobs, want %d at most",
				c.change,
				c.noise, got, c.most/4+1)
		}
	}
}

func TestPageHinkley_IsSilentWithoutDrift(t *testing.T) {
	var p trainer.PageHinkley
	draw, alarms := drifting(7, 0, 1), 0
	for i := range 1_000_000 {
		p.Add(draw(false), i)
		if _, _, alarm := p.Alarm(14); alarm {
			alarms++
			p = trainer.PageHinkley{}
		}
	}
	// 3.7 alarms are expected; the probability of more than 11 is 0.0005.
	if alarms > 11 {
		t.Errorf("%d false alarms in 10^6 stationary jobs, want 3.7 on average", alarms)
	}
}

func TestPageHinkley_IgnoresOneOutlier(t *testing.T) {
	var p trainer.PageHinkley
	p.Add(1000, 0)
	if _, sum, alarm := p.Alarm(14); alarm {
		t.Errorf("one job of 1000 standard deviations raises an alarm of %.1f", sum)
	}
	p.Add(1000, 1)
	if first, sum, alarm := p.Alarm(14); !alarm || first != 0 {
		t.Errorf("two outliers: alarm %v, sum %.1f since %d, want an alarm since 0", alarm, sum, first)
	}
}

func TestAdwin_KeepsCurrentResiduals(t *testing.T) {
	var a trainer.Adwin
	draw := drifting(3, 0.3, 0.05)
	for i := range 20_000 {
		a.Add(draw(false), at(float64(i)))
	}
	count, since, cut := a.Window()
	if count != 20_000 || cut || !since.Equal(at(0)) {
		t.Errorf("without drift: %d residuals in the window since %v, cut %v; want all 20000 uncut",
			count, since, cut)
	}
	noticed := 0
	for i := 20_000; i < 20_200; i++ {
		if a.Add(draw(true), at(float64(i))) && noticed == 0 {
			noticed = i - 19_999
		}
	}
	if noticed == 0 || noticed > 60 {
		t.Errorf("+30 %% is detected after %d jobs, want at most 60", noticed)
	}
	count, since, cut = a.Window()
	if want := at(20_000); !cut || count > 240 || since.Before(want.Add(-40*time.Second)) ||
		since.After(want.Add(40*time.Second)) {
		t.Errorf("%d residuals in the window since %v, want about 200 since %v", count, since, want)
	}
	for i := 20_200; i < 20_400; i++ { // the change is reverted
		a.Add(draw(false), at(float64(i)))
	}
	if _, since, _ = a.Window(); since.Before(at(20_160)) {
		t.Errorf("after the return, the window begins at %v, want about %v", since, at(20_200))
	}
}

func TestAdwin_WrongCutsAreRare(t *testing.T) {
	cuts := 0
	for seed := range uint64(50) {
		var a trainer.Adwin
		draw := drifting(seed, 0, 1)
		for i := range 4_000 {
			if a.Add(draw(false), at(float64(i))) {
				cuts++
			}
		}
	}
	if cuts > 1 {
		t.Errorf("%d cuts in 50 runs of 4000 stationary jobs, want 1 at most", cuts)
	}
}
