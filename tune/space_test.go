package tune_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/tune"
)

func TestParseSpace(t *testing.T) {
	for text, want := range map[string]tune.Parameter{
		"batch=16,32,64":    {Name: "batch", Choices: []string{"16", "32", "64"}},
		"opt=sgd":           {Name: "opt", Choices: []string{"sgd"}},
		"lr=log:1e-4..1e-1": {Name: "lr", Low: 1e-4, High: 1e-1, IsLog: true},
		"dropout=0..0.5":    {Name: "dropout", High: 0.5},
		"layers=1..8":       {Name: "layers", Low: 1, High: 8, IsInteger: true},
		"shift=-3..3":       {Name: "shift", Low: -3, High: 3, IsInteger: true},
		"units=log:16..512": {Name: "units", Low: 16, High: 512, IsLog: true, IsInteger: true},
		"beta=.5...9":       {Name: "beta", Low: 0.5, High: 0.9},
	} {
		got, err := tune.ParseSpace([]string{text})
		if err != nil || len(got) != 1 || got[0].Name != want.Name || !slices.Equal(got[0].Choices, want.Choices) ||
			got[0].Low != want.Low || got[0].High != want.High || got[0].IsLog != want.IsLog ||
			got[0].IsInteger != want.IsInteger {
			t.Errorf("ParseSpace(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseSpace_NamesMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"lr":                      `parameter "lr" has no values`,
		"=1,2":                    `the name "" is not`,
		"Lr=1,2":                  `the name "Lr" is not`,
		"epochs=1,2":              "{epochs} already means something else",
		"lr=1..x":                 `"x" is not a number`,
		"lr=..":                   `"" is not a number`,
		"lr=NaN..1":               `"NaN" is not a number`,
		"lr=2..1":                 "the range from 2 to 1 is empty",
		"lr=1..1":                 "is empty",
		"lr=log:0..1":             "0 has no logarithm",
		"lr=log:1,2":              "log: needs a range",
		"batch=16,,32":            "value 2 is empty",
		"batch=16,16":             "16 is given twice",
		"n=1..1e300":              "",
		"n=0..999999999999999999": "are above",
	} {
		_, err := tune.ParseSpace([]string{text})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ParseSpace(%q) = %v, want an error with %q", text, err, want)
		}
	}
	if _, err := tune.ParseSpace([]string{"lr=1,2", "lr=3"}); err == nil ||
		!strings.Contains(err.Error(), "lr is given twice") {
		t.Errorf("a parameter that is given twice: %v", err)
	}
}

// checkDrawn checks that drawn values lie in the space.
func checkDrawn(t *testing.T, s tune.Space, drawn [][]string) {
	t.Helper()
	for _, values := range drawn {
		for i, p := range s {
			if len(p.Choices) > 0 {
				if !slices.Contains(p.Choices, values[i]) {
					t.Fatalf("%s = %q is not one of %q", p.Name, values[i], p.Choices)
				}
				continue
			}
			v, err := strconv.ParseFloat(values[i], 64)
			if err != nil || v < p.Low || v > p.High {
				t.Fatalf("%s = %q (%v) is not within %g to %g", p.Name, values[i], err, p.Low, p.High)
			}
			if _, err := strconv.ParseInt(values[i], 10, 64); p.IsInteger && err != nil {
				t.Fatalf("%s = %q is not an integer", p.Name, values[i])
			}
		}
	}
}

func TestSpace_DrawsDifferentTrialsThatFollowFromTheSeed(t *testing.T) {
	s, err := tune.ParseSpace([]string{"batch=16,32,64", "layers=1..3", "lr=log:1e-4..1e-1"})
	if err != nil {
		t.Fatal(err)
	}
	first, again, other := s.Draw(7, 200), s.Draw(7, 200), s.Draw(8, 200)
	checkDrawn(t, s, first)
	below := 0
	for i := range first {
		if !slices.Equal(first[i], again[i]) {
			t.Fatalf("trial %d is %v and %v with the same seed", i, first[i], again[i])
		}
		if v, _ := strconv.ParseFloat(first[i][2], 64); v < 0.00316 { // half of the logarithms
			below++
		}
	}
	if slices.EqualFunc(first, other, slices.Equal) {
		t.Error("two seeds draw the same trials")
	}
	if below < 70 || below > 130 {
		t.Errorf("%d of 200 learning rates are in the lower half of the logarithms, want about 100", below)
	}
	seen := map[string]bool{}
	for _, values := range s[:2].Draw(1, 9) { // all combinations
		seen[strings.Join(values, " ")] = true
	}
	if len(seen) != 9 {
		t.Errorf("9 trials of 9 combinations have %d different ones", len(seen))
	}
}

// No text crashes the parser, and what it accepts can be drawn.
func FuzzParseSpace(f *testing.F) {
	for _, text := range []string{
		"lr=log:1e-4..1e-1", "dropout=0..0.5", "layers=1..8", "batch=16,32,64", "x=..", "x=log:1..2", "a=1...5",
		"n=-9007199254740992..9007199254740992", "x=1e-308..1e308", "x=log:5e-324..1e308",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := tune.ParseSpace([]string{text})
		if err != nil {
			return
		}
		checkDrawn(t, s, s.Draw(1, 3))
	})
}

// A range of two integers is reported, because it was probably meant to be one of real numbers.
func TestSpace_NarrowNamesRangesOfTwoIntegers(t *testing.T) {
	s, err := tune.ParseSpace([]string{"a=0..1", "b=0.0..1", "c=0,1", "d=1..8"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--param a=0..1 has the integers 0 and 1 only: write 0.0..1 for real numbers"}
	if got := s.Narrow(); !slices.Equal(got, want) {
		t.Errorf("Narrow() = %q, want %q", got, want)
	}
}
