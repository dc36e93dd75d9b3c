package report

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"courier/regress"
	"courier/report/shorten"
)

func TestLevelsOf_HasACellForEachMethod(t *testing.T) {
	check := func(method, level string) regress.LevelCheck {
		return regress.LevelCheck{Method: method, Feature: "cpu", Level: level}
	}
	got := levelsOf([]regress.LevelCheck{
		check("a", "1"),
		check("a", "2"),
		check("b", "2"),
		check("b", "4"),
		check("c", "1"),
	})
	var told []string
	for _, l := range got.Lines {
		line := l.Level
		for _, c := range l.Cells {
			if c == nil {
				line += " -"
			} else {
				line += " " + c.Method
			}
		}
		told = append(told, line)
	}
	if want := []string{"1 a - c", "2 a b -", "4 - b -"}; !reflect.DeepEqual(told, want) ||
		!reflect.DeepEqual(got.Methods, []string{"a", "b", "c"}) {
		t.Errorf("levelsOf = %q of %q, want %q", told, got.Methods, want)
	}
}

func TestPlot_NamesFitUnderTheAxis(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("resnet-%d", 100+i))
	}
	if got := fmt.Sprint((&chart{
		names: []string{"lenet5", "simplenet"},
	}).ticksX()); got != "[{0 lenet5} {1 simplenet}]" {
		t.Errorf("ticksX of two names = %s, want one tick for each", got)
	}
	for n := 3; n <= 30; n++ {
		letters, seen := 0, map[string]bool{}
		for _, tick := range (&chart{names: many[:n]}).ticksX() {
			letters += len([]rune(tick.name)) + 1
			if seen[tick.name] {
				t.Errorf("two ticks of %d names are labeled %s, want unique labels", n, tick.name)
			}
			seen[tick.name] = true
		}
		if float64(letters)*letterWidth > plotWidth {
			t.Errorf("labels of %d names have %d letters, want them to fit the plot", n, letters)
		}
	}
	if got := shorten.Name("transformer", 6, false); got != "trans…" {
		t.Errorf("Name(transformer) = %q, want trans…", got)
	}
	if got := fewValues([]float64{512, 64, 128, 64}, true); !reflect.DeepEqual(got,
		[]float64{64, 128, 512}) {
		t.Errorf("fewValues = %g, want 64, 128 and 512", got)
	}
	if got := fewValues([]float64{1, 1.01, 100}, false); got != nil {
		t.Errorf("fewValues of crowded numbers = %g, want none", got)
	}
}

func TestWhyNotFirst_NamesTheDifference(t *testing.T) {
	r := &regress.SelectReport{
		Winner: "law",
		Candidates: []regress.Judged{
			{Name: "forest", Pinball: regress.Estimate{Value: 9}},
			{Name: "law", Pinball: regress.Estimate{Value: 10}},
		},
	}
	if got := whyNotFirst(r); !strings.Contains(got,
		"The loss of forest is 10.0 % lower, but law is smoother") {
		t.Errorf("whyNotFirst = %q, want the lower loss of forest and the smoother law", got)
	}
	r.Winner = "forest"
	if got := whyNotFirst(r); got != "" {
		t.Errorf("whyNotFirst of the first candidate = %q, want none", got)
	}
}

func TestThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{
		3:       "3.00",
		312.4:   "312",
		0.9:     "0.900",
		27608.4: "27608",
		0:       "0.00",
		2.5e12:  "2.50e+12",
	} {
		if got := threeDigits(x); got != want {
			t.Errorf("threeDigits(%g) = %s, want %s", x, got, want)
		}
	}
}

// Equivalent grid points are listed once.
func TestWriteGrid_ListsEachPointOnce(t *testing.T) {
	f := &Fit{Report: regress.SelectReport{Target: "t"}}
	for k, trees := range []int{50, 50, 100} {
		f.Grid = append(f.Grid, regress.GridPoint{
			Options: regress.ForestOptions{Trees: trees, MaxDepth: 4, FeaturesPerSplit: 2},
			MSE:     float64(1 + k/2),
		})
	}
	var b strings.Builder
	writeGrid(&b, f)
	if n := strings.Count(b.String(), " trees, depth 4"); n != 2 {
		t.Errorf("%d grid points are listed, want 2:\n%s", n, b.String())
	}
}

func TestTicks_AreFewAndInside(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
	}{
		{0, 1, false},
		{-0.17, 0.33, false},
		{60, 1100, true},
		{0.9, 1.4, true},
		{1e-6, 1e6, true},
		{5, 6, false},
	} {
		all := ticks(c.low, c.high, c.log)
		if len(all) < 2 || len(all) > 12 {
			t.Errorf("ticks(%+v) = %g, want 2 to 12 ticks", c, all)
		}
		for _, v := range all {
			if v < c.low-1e-9 || v > c.high+1e-9 {
				t.Errorf("ticks(%+v) contains %g, want only values within the range", c, v)
			}
		}
	}
}
