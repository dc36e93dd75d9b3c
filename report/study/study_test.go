package study_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"courier/regress/anova"
	"courier/regress/table"
	"courier/report/study"
)

// Jobs that ran together are one observation.
func TestAnalyse_AveragesJobsThatRanTogether(t *testing.T) {
	runs, err := table.Read(strings.NewReader(`block,job,jobs,batch_size,total_seconds
a,1,2,64,10
a,2,2,64.0,14
b,1,2,64,11
b,2,2,64,12
c,1,2,128,6
c,2,2,128,8
d,1,2,128,5
d,2,2,128,8
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := study.Analyse(t.Context(), runs, study.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Analyses[0]
	if s.Runs != 4 || s.Averaged != 8 || a.Fitted[0] != 11.75 || a.ResidualDegrees != 2 {
		t.Errorf("%d runs, %d averaged, fitted %g, %d residual degrees, want 4, 8, 11.75, 2",
			s.Runs, s.Averaged, a.Fitted[0], a.ResidualDegrees)
	}
}

// Any table is analysed or refused, and never makes the program panic.
func FuzzAnalyse(f *testing.F) {
	for _, seed := range []string{
		"batch_size,total_seconds\n64,5\n64,6\n128,3\n128,2\n",
		"batch_size,cpus,total_seconds,status\n64,1,5,finished\n64,NaN,inf,failed\n",
		"model,jobs,accuracy\na,1,0.5\nb,2,0.25\na,2,1e308\nb,1,-1e308\n",
		"a\n", "", "\xef\xbb\xbfbatch,time\n1,1e-320\n2,0\n1,3\n",
		"batch,cpus,jobs,time,cpu_mean_pct,processes\n1,1,1,5,1e308,1\n2,2,1e300,6,-1e308,1e300\n" +
			"1,1,1,4,,1e-300\n2,1,2,1,2,1e300\n1,2,1,2,2,2\n",
		"block,job,batch,cpus,time\na,1,64,1,5\na,2,64,1,6\nb,1,1,1,7\nc,1,1,2,9\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := table.Read(bytes.NewReader(data))
		if err != nil || len(runs.Rows) > 100 {
			return
		}
		s, err := study.Analyse(t.Context(), runs, study.Options{NoRegressors: true})
		if err != nil {
			return
		}
		s.WriteText(io.Discard)
		if _, err := json.Marshal(s); err != nil {
			t.Errorf("a figure is not a number: %v", err)
		}
	})
}

// A table that is too large is refused with its size, before and after it is read.
func TestRead_RefusesLargeTables(t *testing.T) {
	line := "64,1.5\n"
	rows := io.MultiReader(strings.NewReader("batch,time\n"),
		strings.NewReader(strings.Repeat(line, 1_000_000)))
	_, err := study.Read(rows)
	if err == nil || err.Error() !=
		"the table has 1000000 rows, want at most 100000: analyse a part of the runs" {
		t.Errorf("error %v, want one about 1000000 rows", err)
	}

	wide := &repeatedLine{line: []byte(strings.Repeat("1", 1<<16) + "," + line)}
	_, err = study.Read(io.MultiReader(strings.NewReader("a,batch,time\n"), wide))
	if err == nil || err.Error() !=
		"the table has more than 64 MiB: leave out columns or rows" {
		t.Errorf("error %v, want one about 64 MiB", err)
	}
}

// repeatedLine has the same line without end.
type repeatedLine struct {
	line []byte
	at   int
}

func (r *repeatedLine) Read(p []byte) (int, error) {
	n := copy(p, r.line[r.at:])
	r.at = (r.at + n) % len(r.line)
	return n, nil
}

// By default, a model that is too large with interactions has none, and a note says so.
func TestAnalyse_LeavesOutTooManyInteractions(t *testing.T) {
	var b strings.Builder
	b.WriteString("batch,cpus,time\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "%d,%d,%d.5\n", i%20, i/20%20, i*7919%101)
	}
	runs, err := study.Read(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := study.Analyse(t.Context(), runs, study.Options{NoRegressors: true})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Analyses[0]
	if len(a.Terms) != 2 || !slices.Contains(a.Notes,
		"a model with interactions is too large, so it has none") {
		t.Errorf("%d terms, notes %q, want 2 and one about the size", len(a.Terms), a.Notes)
	}
	o := study.Options{Interactions: []string{"2"}, NoRegressors: true}
	if _, err = study.Analyse(t.Context(), runs, o); !errors.Is(err, anova.ErrTooLarge) {
		t.Errorf("error %v, want one about the size", err)
	}
}
