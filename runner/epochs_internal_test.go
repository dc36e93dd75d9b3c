package runner

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/runner/output"
	"courier/schemas"
)

func TestEpochFold(t *testing.T) {
	type arrival struct {
		after   float64 // seconds since the start
		reports string  // [covered*]number[=seconds][@began][@@reported], separated by spaces
	}
	for _, test := range []struct {
		name     string
		arrivals []arrival
		want     string // number=seconds/source
		ignored  int
		startup  string
	}{
		{
			"a reported duration", []arrival{{10, "1=2.5"}, {13, "2=2.75"}},
			"1=2.5/reported 2=2.75/reported", 0, "7.5",
		},
		{
			"the time since the previous report", []arrival{{10, "1"}, {13, "2"}, {17, "3"}},
			"1=10/arrival 2=3/arrival 3=4/arrival", 0, "-",
		},
		{
			"reports that arrive together", []arrival{{10, "1"}, {16, "2 3 4"}},
			"1=10/arrival 2=2/arrival 3=2/arrival 4=2/arrival", 0, "-",
		},
		{"missing epochs", []arrival{{10, "1"}, {16, "4"}}, "1=10/arrival 4=2/arrival", 0, "-"},
		{"a count from 0", []arrival{{10, "0=1"}, {11, "1=1"}}, "1=1/reported 2=1/reported", 0, "9"},
		{
			"continued from a checkpoint", []arrival{{10, "7"}, {12, "8"}},
			"7=10/arrival 8=2/arrival", 0, "-",
		},
		{
			"smaller and repeated numbers", []arrival{{10, "5=1"}, {11, "5=1 4=1"}, {12, "6=1"}},
			"5=1/reported 6=1/reported", 2, "9",
		},
		{"no time passed", []arrival{{0, "1"}, {5, "1 2"}}, "2=5/arrival", 2, "-"},
		{"reported before the start", []arrival{{1, "1=5"}}, "1=5/reported", 0, "0"},
		{"a block of rounds", []arrival{{12, "6*6"}, {15, "3*9"}}, "6=2/arrival 9=1/arrival", 0, "-"},
		{"a block with a duration", []arrival{{12, "6*6=1.5"}}, "6=1.5/reported", 0, "3"},
		{
			"the start of the first epoch", []arrival{{12, "1@9"}, {16, "2@13"}},
			"1=3/arrival 2=4/arrival", 0, "9",
		},
		{
			"lines that arrived with those of the previous epoch",
			[]arrival{{12, "1"}, {12, "2@@15"}}, "1=12/arrival 2=3/arrival", 0, "-",
		},
		{"a start that was buffered", []arrival{{12, "1@12"}}, "1=12/arrival", 0, "-"},
		{"a number out of range", []arrival{{1, "1=1"}, {2, "2000000=1"}}, "1=1/reported", 1, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEpochState(noon)
			var got []string
			for _, a := range test.arrivals {
				var reports []output.EpochReport
				for _, text := range strings.Fields(a.reports) {
					r := output.EpochReport{At: noon.Add(durationOf(a.after))}
					text, reported, isLate := strings.Cut(text, "@@")
					if isLate {
						seconds, err := strconv.ParseFloat(reported, 64)
						if err != nil {
							t.Fatal(err)
						}
						r.ReportedAt = noon.Add(durationOf(seconds))
					}
					text, began, hasBegun := strings.Cut(text, "@")
					if hasBegun {
						seconds, err := strconv.ParseFloat(began, 64)
						if err != nil {
							t.Fatal(err)
						}
						r.BeganAt = noon.Add(durationOf(seconds))
					}
					if covered, rest, ok := strings.Cut(text, "*"); ok {
						n, err := strconv.ParseUint(covered, 10, 32)
						if err != nil {
							t.Fatal(err)
						}
						r.Epochs, text = uint32(n), rest
					}
					if n, _ := fmt.Sscanf(text, "%d=%g", &r.Epoch, &r.Seconds); n == 0 {
						t.Fatalf("report %q", text)
					}
					reports = append(reports, r)
				}
				for _, f := range e.add(reports) {
					got = append(got, fmt.Sprintf("%d=%g/%s", f.Epoch, f.Seconds, f.source))
				}
			}
			startup := "-"
			if e.startupSeconds != nil {
				startup = fmt.Sprint(*e.startupSeconds)
			}
			if text := strings.Join(got, " "); text != test.want || e.ignored != test.ignored ||
				startup != test.startup {
				t.Errorf("add() = %q, %d ignored, startup %s; want %q, %d, %s",
					text, e.ignored, startup, test.want, test.ignored, test.startup)
			}
		})
	}
}

func TestUnassignedRunNumber(t *testing.T) {
	if got := unassignedRunNumber(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)); got != 217_382_400 {
		t.Errorf("unassignedRunNumber() = %d, want 217382400 seconds since 2020", got)
	}
}

// Reports that were held back until they were confirmed have the times at which their epochs ended. The
// first epoch counts as long as the second one, and the rest before it is the start-up.
func TestEpochFold_HeldBack(t *testing.T) {
	e := newEpochState(noon)
	var reports []output.EpochReport
	for i, after := range []float64{10, 13, 17} {
		reports = append(reports, output.EpochReport{Epoch: uint32(i + 1), At: noon.Add(durationOf(after))})
	}
	var got []string
	for _, f := range e.add(reports) {
		got = append(got, fmt.Sprintf("%d=%g at %g", f.Epoch, f.Seconds, f.At.Sub(noon).Seconds()))
	}
	if e.startupSeconds == nil || *e.startupSeconds != 7 {
		t.Errorf("the start-up is %v, want 7 s", e.startupSeconds)
	}
	if want := "1=3 at 10 2=3 at 13 3=4 at 17"; strings.Join(got, " ") != want {
		t.Errorf("add() = %q, want %q", got, want)
	}
}

// The first epoch by arrival confirms or undoes a move if its duration is known without the start-up.
func TestEpochState_KnowsTheFirstEpochWithoutTheStartup(t *testing.T) {
	known, unknown := &epochState{startupSeconds: new(float64)}, &epochState{}
	for _, test := range []struct {
		epochs    *epochState
		source    string
		isRestart bool
		want      float64
	}{
		{known, schemas.DurationArrival, false, 5},
		{known, schemas.DurationArrival, true, 0}, // of the first process
		{unknown, schemas.DurationArrival, false, 0},
		{unknown, schemas.DurationReported, true, 5},
	} {
		f := finishedEpoch{output.EpochReport{Seconds: 5}, test.source}
		if got := test.epochs.firstSeconds(f, test.isRestart); got != test.want {
			t.Errorf("firstSeconds(%s, restart %v) = %g, want %g", test.source, test.isRestart, got, test.want)
		}
	}
}
