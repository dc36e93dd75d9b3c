package elastic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// Format is what a trace file contains.
type Format string

// Formats of traces. All but FormatDeadlines record what ran, without models and deadlines.
const (
	FormatDeadlines Format = "deadlines" // ReadTrace: jobs with models, iterations and deadlines
	FormatRecorded  Format = "recorded"  // CSV: job_id, submission_time, num_gpu, duration
	FormatHelios    Format = "helios"    // CSV: cluster_log.csv of HeliosData (Hu et al., SC 2021)
	FormatAlibaba   Format = "alibaba"   // CSV: pod list of cluster-trace-gpu-v2023 (Weng et al., ATC 2023)
	FormatPhilly    Format = "philly"    // JSON: cluster_job_log of philly-traces (Jeon et al., ATC 2019)
)

// Columns returns the names of the columns of a format.
func (f Format) Columns() TraceColumns {
	c := DefaultColumns()
	switch f {
	case FormatHelios:
		c.Submitted, c.GPUs = "submit_time", "gpu_num"
	case FormatAlibaba:
		c.ID, c.Submitted = "name", "creation_time"
		c.Started, c.Ended = "scheduled_time", "deletion_time"
	}
	return c
}

// RecordedJob is a job that ran, without its model and deadline.
type RecordedJob struct {
	ID        string
	Submitted time.Duration // on the clock of the trace
	Duration  time.Duration
	GPUs      int
}

// ReadRecordedFile reads a file of any format but FormatDeadlines, in order of submission. skipped is
// the number of jobs without a submission, a GPU, a begin or an end: they are left out.
func ReadRecordedFile(
	path string, format Format, columns TraceColumns,
) (jobs []RecordedJob, skipped int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	if format == FormatPhilly {
		jobs, skipped, err = readPhilly(file)
	} else {
		jobs, skipped, err = readRecorded(file, columns)
	}
	if err == nil && len(jobs) == 0 {
		err = errNoJobs
		if skipped > 0 {
			err = fmt.Errorf("no job is usable: %s without a submission, a GPU, a begin or an end",
				schemas.FormatCount(uint64(skipped), "job"))
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	slices.SortStableFunc(jobs, func(a, b RecordedJob) int { return cmp.Compare(a.Submitted, b.Submitted) })
	return jobs, skipped, nil
}

func readRecorded(r io.Reader, columns TraceColumns) (jobs []RecordedJob, skipped int, err error) {
	err = eachRow(r, &columns, columns.recorded, func(row *traceRow) error {
		j, err := row.recordedJob()
		switch {
		case err != nil:
			return err
		case j == nil:
			skipped++
		default:
			jobs = append(jobs, *j)
		}
		return nil
	})
	return jobs, skipped, err
}

// recordedJob returns nil for a job without a submission, a GPU or a duration.
func (r *traceRow) recordedJob() (*RecordedJob, error) {
	j := &RecordedJob{ID: strings.Clone(r.text(r.columns.ID))}
	if j.ID == "" {
		return nil, fmt.Errorf("missing %s", r.columns.ID)
	}
	if isMissing(r.text(r.columns.Submitted)) || isMissing(r.text(r.columns.GPUs)) {
		return nil, nil
	}
	gpus, err := r.number(r.columns.GPUs)
	if err != nil {
		return nil, err
	}
	if gpus > maxRecordedGPUs || gpus != math.Trunc(gpus) {
		return nil, fmt.Errorf("%s is %g, want an integer up to %d", r.columns.GPUs, gpus, maxRecordedGPUs)
	}
	j.GPUs = int(gpus)
	if j.Submitted, err = r.time(r.columns.Submitted); err != nil {
		return nil, err
	}
	if _, ok := r.index[r.columns.Duration]; ok {
		if isMissing(r.text(r.columns.Duration)) {
			return nil, nil
		}
		j.Duration, err = r.time(r.columns.Duration)
	} else {
		j.Duration, err = r.between(r.columns.Started, r.columns.Ended)
	}
	if err != nil || j.GPUs == 0 || j.Duration <= 0 {
		return nil, err
	}
	return j, nil
}

// maxRecordedGPUs bounds the GPUs of a recorded job; curves end at maxGPUs.
const maxRecordedGPUs = 100_000

// between returns the time between two columns; 0 if one of them is missing.
func (r *traceRow) between(start, end string) (time.Duration, error) {
	if isMissing(r.text(start)) || isMissing(r.text(end)) {
		return 0, nil
	}
	from, err := r.time(start)
	if err != nil {
		return 0, err
	}
	to, err := r.time(end)
	return to - from, err
}

// isMissing reports whether a cell has no value.
func isMissing(cell string) bool {
	return slices.Contains([]string{"", "nan", "none", "null"}, strings.ToLower(strings.TrimSpace(cell)))
}

// phillyJob is an entry of the job log of the Philly traces.
type phillyJob struct {
	ID        string `json:"jobid"`
	Submitted string `json:"submitted_time"`
	Attempts  []struct {
		Start  string `json:"start_time"`
		End    string `json:"end_time"`
		Detail []struct {
			GPUs []string `json:"gpus"`
		} `json:"detail"`
	} `json:"attempts"`
}

// readPhilly reads the job log of the Philly traces.
func readPhilly(r io.Reader) (jobs []RecordedJob, skipped int, err error) {
	var log []phillyJob
	err = json.NewDecoder(withoutMark(r)).Decode(&log)
	if errors.Is(err, io.EOF) {
		return nil, 0, errNoJobs
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the list of jobs: %w; want a JSON array, as in the log of Philly", err)
	}
	seen := map[string]bool{}
	for i := range log {
		l := &log[i]
		if l.ID == "" || seen[l.ID] {
			return nil, 0, fmt.Errorf("job %q occurs twice or has no jobid", l.ID)
		}
		seen[l.ID] = true
		j, err := l.recorded()
		if err != nil {
			return nil, 0, err
		}
		if j == nil {
			skipped++
			continue
		}
		jobs = append(jobs, *j)
	}
	return jobs, skipped, nil
}

// recorded returns nil for a job without a submission, a GPU or a duration. The duration is that of
// all attempts, and the GPUs are those of the first one.
func (l *phillyJob) recorded() (j *RecordedJob, err error) {
	if isMissing(l.Submitted) {
		return nil, nil
	}
	j = &RecordedJob{ID: l.ID}
	if j.Submitted, err = parseTime(l.Submitted); err != nil {
		return nil, fmt.Errorf("submitted_time of job %q: %w", l.ID, err)
	}
	for i, a := range l.Attempts {
		if isMissing(a.Start) || isMissing(a.End) {
			continue
		}
		start, err := parseTime(a.Start)
		if err != nil {
			return nil, fmt.Errorf("start_time of job %q: %w", l.ID, err)
		}
		end, err := parseTime(a.End)
		if err != nil {
			return nil, fmt.Errorf("end_time of job %q: %w", l.ID, err)
		}
		j.Duration += max(0, end-start)
		for _, d := range a.Detail {
			if i == 0 {
				j.GPUs += len(d.GPUs)
			}
		}
	}
	if j.GPUs == 0 || j.Duration == 0 {
		return nil, nil
	}
	return j, nil
}

// Derive gives recorded jobs what they lack, as the authors of ElasticFlow did for their traces
// (Gu et al., ASPLOS 2023, section 6.1): a model with a batch size by chance, the iterations that it
// runs in the duration on the GPUs, and a deadline after 0.5 to 1.5 of the duration. A job has the
// rate of the largest profiled number of GPUs that it held. The same seed gives the same jobs.
func Derive(recorded []RecordedJob, rates Throughputs, seed uint64) ([]TraceJob, error) {
	type setting struct {
		model string
		batch int
	}
	var settings []setting
	for _, model := range slices.Sorted(maps.Keys(rates)) {
		for _, batch := range slices.Sorted(maps.Keys(rates[model])) {
			if len(rates[model][batch]) > 0 {
				settings = append(settings, setting{model, batch})
			}
		}
	}
	if len(settings) == 0 {
		return nil, errors.New("the throughput tables have no rates")
	}
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]TraceJob, 0, len(recorded))
	for _, r := range recorded {
		s := settings[random.IntN(len(settings))]
		window := (minTightness + (maxTightness-minTightness)*random.Float64()) * r.Duration.Seconds()
		curve := rates[s.model][s.batch]
		rate := curve[0].Rate
		for _, p := range curve {
			if p.Units <= r.GPUs {
				rate = p.Rate
			}
		}
		jobs = append(jobs, TraceJob{
			ID: r.ID, Submitted: r.Submitted, Deadline: r.Submitted + duration(window),
			Iterations: math.Floor(rate * r.Duration.Seconds()), Model: s.model, BatchSize: s.batch,
		})
	}
	return jobs, nil
}

// minTightness and maxTightness bound the time to a derived deadline, relative to the duration.
const minTightness, maxTightness = 0.5, 1.5
