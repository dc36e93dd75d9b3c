package study_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"courier/regress/table"
	"courier/report/study"
)

// Jobs that ran together are one observation.
func TestAnalyse_AveragesJobsThatRanTogether(t *testing.T) {
	runs, err := table.Read(strings.NewReader(`block,job,jobs,batch_size,total_seconds
a,1,2,64,10
a,2,2,64,14
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
		if err := s.WriteText(io.Discard); err != nil {
			t.Error(err)
		}
		if err := s.WriteJSON(io.Discard); err != nil {
			t.Errorf("a figure is not a number: %v", err)
		}
	})
}
