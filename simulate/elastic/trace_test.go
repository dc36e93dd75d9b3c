package elastic_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/policy"
	"courier/simulate/elastic"
)

// Columns may have any order, others are ignored, and jobs are returned in order of submission.
func TestReadTrace(t *testing.T) {
	jobs, err := elastic.ReadTrace(strings.NewReader(
		"\ufeffjob_id,deadline,submission_time,num_iteration,user,model_name,batch_size\n" +
			"b,100,20,5,eve,bert,64\n" +
			"a,90,10.5,7,bob,vgg16,32\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := elastic.TraceJob{
		ID:         "a",
		Submitted:  10500 * time.Millisecond,
		Deadline:   90 * time.Second,
		Iterations: 7,
		Model:      "vgg16",
		BatchSize:  32,
	}
	if len(jobs) != 2 || jobs[0] != want {
		t.Errorf("jobs %+v, want %+v first", jobs, want)
	}
}

func TestReadThroughputs_NamesUnusableCells(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"negative":    {"global_batch_size,1,2\n32,1,-2\n", `net.csv: line 2: column 2: the rate "-2"`},
		"infinite":    {"global_batch_size,1,2\n32,Inf,2\n", `net.csv: line 2: column 1: the rate "Inf"`},
		"text":        {"global_batch_size,1,2\n32,1,2\n64,fast,2\n", `line 3: column 1: the rate "fast"`},
		"GPUs twice":  {"global_batch_size,1,1\n32,1,2\n", `column 3 is named "1", want a name of its own`},
		"batch twice": {"global_batch_size,1\n32,1\n32,2\n", "line 3: batch size 32 occurs twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := elastic.ReadThroughputs(throughputs(t, test.text))
			wantError(t, err, test.want)
		})
	}
	// The published tables have nan where nothing was profiled.
	rates, err := elastic.ReadThroughputs(throughputs(t, "\ufeffglobal_batch_size,1,2\n32,1.5,nan\n"))
	if err != nil || len(rates["net"][32]) != 1 {
		t.Errorf("rates %v, %v; want one of 1 GPU", rates, err)
	}
}

// throughputs writes a table net.csv, and returns its directory.
func throughputs(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "net.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadTrace_RejectsUnusableRows(t *testing.T) {
	const header = "job_id,submission_time,num_iteration,model_name,deadline,batch_size\n"
	for name, test := range map[string]struct{ text, want string }{
		"empty":          {"", "the file is empty"},
		"only a mark":    {"\ufeff", "the file is empty"},
		"column twice":   {"a,job_id,a\n", `column 3 is named "a", want a name of its own`},
		"no jobs":        {header, "no jobs"},
		"missing column": {"job_id,deadline\n", `there is no column "submission_time" among job_id, deadline`},
		"repeated job":   {header + "a,1,1,m,1,1\na,1,1,m,1,1\n", `line 3: job "a" occurs twice`},
		"not a number":   {header + "a,x,1,m,1,1\n", `line 2: submission_time is "x"`},
		"negative":       {header + "a,1,-1,m,1,1\n", `num_iteration is "-1"`},
		"too late":       {header + "a,1,1,m,1e10,1\n", `deadline is "1e10", want a number from 0 to 4e+09`},
		"broken batch":   {header + "a,1,1,m,1,1.5\n", `batch_size is "1.5"`},
		"nameless":       {header + ",1,1,m,1,1\n", "missing job_id"},
		"too few cells":  {header + "a,1\n", "wrong number of fields"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := elastic.ReadTrace(strings.NewReader(test.text))
			wantError(t, err, test.want)
		})
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("job_id,submission_time,num_iteration,model_name,deadline,batch_size\na,1,1,m,1,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := elastic.ReadTrace(strings.NewReader(text))
		if err == nil && len(jobs) == 0 {
			t.Error("neither jobs nor an error")
		}
	})
}

func TestVerify_FindsBrokenRules(t *testing.T) {
	trace, rates := small(t)
	o := cluster(16, policy.ChargeAll)
	job := trace[0]
	at := func(from, to time.Duration, gpus int) elastic.Stretch {
		return elastic.Stretch{
			Job:       job.ID,
			Start:     job.Submitted + from,
			End:       job.Submitted + to,
			GPUs:      gpus,
			BatchSize: job.BatchSize,
		}
	}
	other := at(0, time.Hour, 2)
	other.BatchSize = 96
	unknown := at(0, time.Hour, 2)
	unknown.Job = "unknown"
	for name, test := range map[string]struct {
		schedule []elastic.Stretch
		want     string
	}{
		"before submission": {[]elastic.Stretch{at(-time.Second, time.Hour, 2)}, "is submitted at"},
		"not profiled":      {[]elastic.Stretch{at(0, time.Hour, 3)}, "3 GPUs"},
		"empty":             {[]elastic.Stretch{at(0, 0, 2)}, "the stretch ends at"},
		"batch size":        {[]elastic.Stretch{other}, "batch size 96"},
		"unknown":           {[]elastic.Stretch{unknown}, "no such job"},
		"overlap": {
			[]elastic.Stretch{at(0, time.Hour, 2), at(30*time.Minute, 2*time.Hour, 2)}, "overlap",
		},
		"moments": {
			[]elastic.Stretch{at(0, 30*time.Second, 2), at(30*time.Second, time.Hour, 4)}, "moments",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := elastic.Verify(trace, rates, o, test.schedule)
			wantError(t, err, test.want)
		})
	}
	_, err := elastic.Verify(trace, rates, cluster(1, policy.ChargeAll), []elastic.Stretch{at(0, time.Hour, 2)})
	wantError(t, err, "2 of 1 GPUs")
}
