package collector

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestEpochs(t *testing.T) {
	type arrival struct {
		after   float64 // seconds since the start
		reports string  // number[=seconds] separated by spaces
	}
	for _, test := range []struct {
		name     string
		arrivals []arrival
		want     string // number=seconds/source
		refused  int
		startup  string
	}{
		{"a reported duration is taken", []arrival{{10, "1=2.5"}, {13, "2=2.75"}}, "1=2.5/reported 2=2.75/reported", 0, "7.5"},
		{"else the time since the last report", []arrival{{10, "1"}, {13, "2"}, {17, "3"}}, "1=10/arrival 2=3/arrival 3=4/arrival", 0, "-"},
		{"together they share it", []arrival{{10, "1"}, {16, "2 3 4"}}, "1=10/arrival 2=2/arrival 3=2/arrival 4=2/arrival", 0, "-"},
		{"epochs that were not seen have their part", []arrival{{10, "1"}, {16, "4"}}, "1=10/arrival 4=2/arrival", 0, "-"},
		{"a count from 0", []arrival{{10, "0=1"}, {11, "1=1"}}, "1=1/reported 2=1/reported", 0, "9"},
		{"a run from a checkpoint", []arrival{{10, "7"}, {12, "8"}}, "7=10/arrival 8=2/arrival", 0, "-"},
		{"back and again", []arrival{{10, "5=1"}, {11, "5=1 4=1"}, {12, "6=1"}}, "5=1/reported 6=1/reported", 2, "9"},
		{"no time passed", []arrival{{0, "1"}, {5, "1 2"}}, "2=5/arrival", 2, "-"},
		{"reported before the start", []arrival{{1, "1=5"}}, "1=5/reported", 0, "0"},
		{"beyond all bounds", []arrival{{1, "1=1"}, {2, "2000000=1"}}, "1=1/reported", 1, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEpochs(noon)
			var got []string
			for _, a := range test.arrivals {
				var reports []report
				for _, text := range strings.Fields(a.reports) {
					r := report{at: noon.Add(secondsOf(a.after))}
					if n, _ := fmt.Sscanf(text, "%d=%g", &r.epoch, &r.seconds); n == 0 {
						t.Fatalf("report %q", text)
					}
					reports = append(reports, r)
				}
				for _, f := range e.add(reports) {
					got = append(got, fmt.Sprintf("%d=%g/%s", f.number, f.seconds, f.source))
				}
			}
			startup := "-"
			if e.startup != nil {
				startup = fmt.Sprint(*e.startup)
			}
			if text := strings.Join(got, " "); text != test.want || e.refused != test.refused || startup != test.startup {
				t.Errorf("add() = %q, %d refused, startup %s; want %q, %d, %s", text, e.refused, startup, test.want, test.refused, test.startup)
			}
		})
	}
}

func TestUnknownRun_IsBeyondEveryCount(t *testing.T) {
	if got := unknownRun(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)); got != 217_382_400 {
		t.Errorf("unknownRun() = %d, want 217382400 seconds since 2020", got)
	}
}
