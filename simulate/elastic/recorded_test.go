package elastic_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"courier/policy"
	"courier/simulate/elastic"

	"github.com/google/go-cmp/cmp"
)

// write writes a file, and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// midnight is the time of 2020-04-01 00:00:00 in traces with dates.
const midnight = 1585699200 * time.Second

func TestReadRecordedFile_KnowsTheFormats(t *testing.T) {
	for format, test := range map[elastic.Format]struct {
		text    string
		want    []elastic.RecordedJob
		skipped int
	}{
		elastic.FormatRecorded: {
			"job_id,submission_time,num_gpu,duration\nb,20,4,60\na,10,1,30.5\n",
			[]elastic.RecordedJob{
				{ID: "a", Submitted: 10 * time.Second, Duration: 30500 * time.Millisecond, GPUs: 1},
				{ID: "b", Submitted: 20 * time.Second, Duration: time.Minute, GPUs: 4},
			}, 0,
		},
		elastic.FormatHelios: {
			"job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" +
				"7,u,v,8,32,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:01:00,2020-04-01 00:02:00,60,55\n" +
				"8,u,v,0,4,1,COMPLETED,2020-04-01 00:00:06,2020-04-01 00:01:00,2020-04-01 00:02:00,60,54\n" +
				"9,u,v,1,4,1,CANCELLED,2020-04-01 00:00:07,None,2020-04-01 00:02:00,,0\n" +
				"10,u,v,1,4,1,COMPLETED,None,2020-04-01 00:01:00,2020-04-01 00:02:00,60,0\n",
			[]elastic.RecordedJob{
				{ID: "7", Submitted: midnight + 5*time.Second, Duration: time.Minute, GPUs: 8},
			}, 3,
		},
		elastic.FormatAlibaba: {
			"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time," +
				"deletion_time,scheduled_time\n" +
				"pod-1,88000,327680,8,1000,,Burstable,Succeeded,900,1500,1000\n" +
				"pod-2,4000,15258,1,220,,BE,Running,910,nan,1000\n",
			[]elastic.RecordedJob{
				{ID: "pod-1", Submitted: 900 * time.Second, Duration: 500 * time.Second, GPUs: 8},
			}, 1,
		},
		elastic.FormatPhilly: {
			`[{"status": "Pass", "jobid": "app-1", "submitted_time": "2020-04-01 00:00:00", "attempts": [
				{"start_time": "2020-04-01 00:00:10", "end_time": "2020-04-01 00:01:10", "detail": [
					{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
				{"start_time": "2020-04-01 00:02:00", "end_time": "2020-04-01 00:02:30", "detail": [
					{"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2"]}]},
				{"start_time": "2020-04-01 00:03:00", "end_time": null, "detail": []}]},
			{"status": "Killed", "jobid": "app-2", "submitted_time": "2020-04-01 00:00:00", "attempts": []},
			{"status": "Pass", "jobid": "app-3", "submitted_time": null, "attempts": []},
			{"status": "Pass", "jobid": "app-4", "submitted_time": "", "attempts": []},
			{"status": "Pass", "jobid": "app-5", "submitted_time": "None", "attempts": []}]`,
			[]elastic.RecordedJob{{ID: "app-1", Submitted: midnight, Duration: 90 * time.Second, GPUs: 3}}, 4,
		},
	} {
		t.Run(string(format), func(t *testing.T) {
			got, skipped, err := elastic.ReadRecordedFile(write(t, test.text), format, format.Columns())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || skipped != test.skipped {
				t.Errorf("skipped %d, want %d; jobs (-want +got):\n%s", skipped, test.skipped, diff)
			}
		})
	}
}

func TestReadRecordedFile_RejectsUnusableInput(t *testing.T) {
	const header = "job_id,submission_time,num_gpu,duration\n"
	for name, test := range map[string]struct {
		format     elastic.Format
		text, want string
	}{
		"no jobs":        {elastic.FormatRecorded, header, "the trace has no jobs"},
		"empty":          {elastic.FormatPhilly, "", "the trace has no jobs"},
		"empty list":     {elastic.FormatPhilly, "[]", "the trace has no jobs"},
		"unusable":       {elastic.FormatRecorded, header + "a,,1,1\n", "no job is usable: 1 job without a submission"},
		"missing column": {elastic.FormatHelios, header, `missing column "submit_time"`},
		"no time":        {elastic.FormatRecorded, header + "a,soon,1,1\n", `line 2: submission_time is "soon"`},
		"half a GPU":     {elastic.FormatRecorded, header + "a,1,0.5,1\n", "num_gpu is 0.5, want an integer"},
		"nameless":       {elastic.FormatRecorded, header + ",1,1,1\n", "missing job_id"},
		"twice":          {elastic.FormatRecorded, header + "a,1,1,1\na,2,1,1\n", `line 3: job "a" occurs twice`},
		"no list":        {elastic.FormatPhilly, "{}", "want a JSON array"},
		"not JSON":       {elastic.FormatPhilly, header, "want a JSON array"},
		"not CSV":        {elastic.FormatHelios, `[{"jobid": "a"}]`, "the trace is JSON, want CSV: only --format philly"},
		"no submission":  {elastic.FormatPhilly, `[{"jobid": "a"}]`, "no job is usable: 1 job without a submission"},
		"no date":        {elastic.FormatPhilly, `[{"jobid": "a", "submitted_time": "x"}]`, `submitted_time of job "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := elastic.ReadRecordedFile(write(t, test.text), test.format, test.format.Columns())
			wantError(t, err, test.want)
		})
	}
}

func TestDerive_IsRepeatable(t *testing.T) {
	rates := tables(t, "testdata/throughputs")
	recorded := make([]elastic.RecordedJob, 200)
	for i := range recorded {
		recorded[i] = elastic.RecordedJob{
			ID: string(rune('a' + i)), Submitted: time.Duration(i) * time.Minute, Duration: time.Hour, GPUs: 1 + i%9,
		}
	}
	jobs, err := elastic.Derive(recorded, rates, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := elastic.Derive(recorded, rates, 1)
	other, _ := elastic.Derive(recorded, rates, 2)
	if !slices.Equal(jobs, again) || slices.Equal(jobs, other) {
		t.Error("jobs depend on something else than the seed, or not on the seed")
	}
	for i, j := range jobs {
		window := (j.Deadline - j.Submitted).Hours()
		if !(window >= 0.5 && window <= 1.5) || rates[j.Model][j.BatchSize] == nil {
			t.Errorf("job %d: %+v, want a deadline after 0.5 to 1.5 hours and a row of a table", i, j)
		}
	}
	if _, err := elastic.Derive(recorded, elastic.Throughputs{}, 1); err == nil {
		t.Error("derived jobs from no rates")
	}
}

// The authors' iterations are those that Derive computes from the recorded GPUs and durations, and
// the policies keep about as many of the derived deadlines as of the published ones.
func TestDerive_AgreesWithThePublishedTraces(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "elasticflow")
	path := filepath.Join(dir, "195job.csv")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no published traces:", err)
	}
	rates := tables(t, filepath.Join(dir, "throughputs_A100"))
	published, err := elastic.ReadTraceFile(path, elastic.DefaultColumns())
	if err != nil {
		t.Fatal(err)
	}
	recorded, skipped, err := elastic.ReadRecordedFile(path, elastic.FormatRecorded, elastic.DefaultColumns())
	if err != nil || skipped != 0 || len(recorded) != len(published) {
		t.Fatalf("%d recorded jobs, %d skipped, %v; want %d", len(recorded), skipped, err, len(published))
	}
	for i, j := range published {
		only := elastic.Throughputs{j.Model: {j.BatchSize: rates[j.Model][j.BatchSize]}}
		derived, err := elastic.Derive(recorded[i:i+1], only, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := derived[0]; math.Abs(got.Iterations-j.Iterations) > 1 {
			t.Errorf("job %s: %g iterations, published %g", j.ID, got.Iterations, j.Iterations)
		}
	}
	for seed := range uint64(3) {
		derived, err := elastic.Derive(recorded, rates, seed)
		if err != nil {
			t.Fatal(err)
		}
		o := cluster(128, policy.ChargeAll)
		best := run(t, derived, rates, "deadline", o)
		if simple := run(t, derived, rates, "edf", o); best.Kept <= simple.Kept || best.Broken > 0 {
			t.Errorf("seed %d: deadline keeps %d of %d jobs and breaks %d, edf keeps %d", seed, best.Kept,
				best.Jobs, best.Broken, simple.Kept)
		}
	}
}

func FuzzReadRecordedFile(f *testing.F) {
	f.Add("job_id,submission_time,num_gpu,duration\na,1,1,1\n", false)
	f.Add(`[{"jobid": "a", "submitted_time": "2020-04-01 00:00:00"}]`, true)
	f.Fuzz(func(t *testing.T, text string, isPhilly bool) {
		format := elastic.FormatRecorded
		if isPhilly {
			format = elastic.FormatPhilly
		}
		jobs, _, err := elastic.ReadRecordedFile(write(t, text), format, format.Columns())
		for _, j := range jobs {
			if j.ID == "" || j.Duration <= 0 || j.GPUs <= 0 || j.Submitted < 0 {
				t.Errorf("job %+v", j)
			}
		}
		if err == nil && len(jobs) == 0 {
			t.Error("neither jobs nor an error")
		}
	})
}
