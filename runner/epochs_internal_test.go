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
		reports string  // [covered*]number[=seconds][@began][@@reported][!], separated by spaces
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
			"1=3/arrival 2=3/arrival 3=4/arrival", 0, "7",
		},
		{
			"reports that arrive together", []arrival{{10, "1"}, {16, "2 3 4"}},
			"1=2/arrival 2=2/arrival 3=2/arrival 4=2/arrival", 0, "8",
		},
		{"missing epochs", []arrival{{10, "1"}, {16, "4"}}, "1=2/arrival 4=2/arrival", 0, "8"},
		{"a count from 0", []arrival{{10, "0=1"}, {11, "1=1"}}, "1=1/reported 2=1/reported", 0, "9"},
		{
			"continued from a checkpoint", []arrival{{10, "7"}, {12, "8"}},
			"7=2/arrival 8=2/arrival", 0, "8",
		},
		{
			"smaller and repeated numbers", []arrival{{10, "5=1"}, {11, "5=1 4=1"}, {12, "6=1"}},
			"5=1/reported 6=1/reported", 2, "9",
		},
		{"no time passed", []arrival{{0, "1"}, {5, "1 2"}}, "2=5/arrival", 2, "-"},
		{"reported before the start", []arrival{{1, "1=5"}}, "1=5/reported", 0, "0"},
		{"a block of rounds", []arrival{{12, "6*6"}, {15, "3*9"}}, "6=1/arrival 9=1/arrival", 0, "6"},
		{"a block with a duration", []arrival{{12, "6*6=1.5"}}, "6=1.5/reported", 0, "3"},
		{
			"the start of the first epoch", []arrival{{12, "1@9"}, {16, "2@13"}},
			"1=3/arrival 2=4/arrival", 0, "9",
		},
		{
			"lines that arrived with those of the previous epoch",
			[]arrival{{12, "1"}, {12, "2@@15"}}, "", 0, "-",
		},
		{"a start that was buffered", []arrival{{12, "1@12"}}, "1=12/arrival", 0, "-"},
		{
			"a buffered output", []arrival{{13, "1 2"}, {17, "3 4"}, {23, "5 6"}},
			"1=2/arrival 2=2/arrival 3=2/arrival 4=2/arrival 5=3/arrival 6=3/arrival", 0, "9",
		},
		{"an output that comes at its end", []arrival{{10, "1 2"}}, "", 0, "-"},
		{"one epoch", []arrival{{10, "1"}}, "1=10/arrival", 0, "-"},
		{"stated by the job", []arrival{{10, "1!"}, {13, "2"}}, "1=10/arrival 2=3/arrival", 0, "-"},
		{"a number out of range", []arrival{{1, "1=1"}, {2, "2000000=1"}}, "1=1/reported", 1, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEpochState(noon)
			var got []string
			add := func(reports []output.EpochReport) {
				for _, f := range e.add(reports) {
					got = append(got, fmt.Sprintf("%d=%g/%s", f.Epoch, f.Seconds, f.source))
				}
			}
			for _, a := range test.arrivals {
				var reports []output.EpochReport
				for _, text := range strings.Fields(a.reports) {
					r := output.EpochReport{At: noon.Add(durationOf(a.after))}
					text, r.IsStated = strings.CutSuffix(text, "!")
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
				add(e.hold(reports))
			}
			add(e.rest())
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

// Reports that were held back have the times at which their epochs ended. The first ones count as long as the
// next ones, and the rest before them is the start-up.
func TestEpochFold_HeldBack(t *testing.T) {
	at := func(epoch, epochs uint32, after float64) output.EpochReport {
		return output.EpochReport{Epoch: epoch, Epochs: epochs, At: noon.Add(durationOf(after))}
	}
	for _, test := range []struct {
		reports []output.EpochReport
		want    string
	}{
		{[]output.EpochReport{at(1, 0, 10), at(2, 0, 13), at(3, 0, 17)}, "1=3 at 10 2=3 at 13 3=4 at 17"},
		{[]output.EpochReport{at(1, 1, 8), at(11, 10, 18)}, "1=1 at 8 11=1 at 18"},
		{[]output.EpochReport{at(1, 0, 9), at(2, 0, 9), at(3, 0, 13), at(4, 0, 13)},
			"1=2 at 7 2=2 at 9 3=2 at 13 4=2 at 13"},
	} {
		e := newEpochState(noon)
		var got []string
		for _, f := range e.add(test.reports) {
			got = append(got, fmt.Sprintf("%d=%g at %g", f.Epoch, f.Seconds, f.At.Sub(noon).Seconds()))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("add() = %q, want %q", text, test.want)
		}
		startup := map[string]float64{"1=3": 7, "1=1": 7, "1=2": 5}[got[0][:3]]
		if e.startupSeconds == nil || *e.startupSeconds != startup {
			t.Errorf("%s: the start-up is %v, want %g s", got[0], e.startupSeconds, startup)
		}
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
