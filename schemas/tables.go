package schemas

import (
	"embed"
	"reflect"
	"strings"
)

//go:embed clickhouse/*.sql
var migrationFiles embed.FS

// Migration is a numbered change of the database. It is final once released. The first one creates
// the tables and views; a test adds a column by another one.
type Migration struct {
	Number     int      // from 1, without gaps
	Name       string   // file name
	Statements []string // SQL statements, in order
}

// Migrations returns every migration in order.
func Migrations() (all []Migration) {
	files, err := migrationFiles.ReadDir("clickhouse") // sorted by name
	for i, file := range files {
		var text []byte
		if text, err = migrationFiles.ReadFile("clickhouse/" + file.Name()); err != nil {
			break
		}
		all = append(all, Migration{
			Number:     i + 1,
			Name:       file.Name(),
			Statements: splitStatements(string(text)),
		})
	}
	if err != nil {
		panic(err) // the program does not contain the files that it was built with
	}
	return all
}

// splitStatements splits SQL at semicolons at the end of a line and drops comments.
func splitStatements(text string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") || strings.TrimSpace(line) == "" {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			all = append(all, strings.TrimSuffix(strings.TrimSpace(b.String()), ";"))
			b.Reset()
		}
	}
	if s := strings.TrimSpace(b.String()); s != "" {
		all = append(all, s)
	}
	return all
}

// Table is a table for the rows of one type.
type Table struct {
	Name string
	Row  any // zero value; its ch tags are the columns, in order
}

// Tables returns every table into which the store inserts events.
func Tables() []Table {
	return []Table{
		{"job_submitted", SubmittedRow{}},
		{"job_started", Started{}},
		{"job_epoch", Epoch{}},
		{"job_ended", Ended{}},
		{"job_advice", AdviceRow{}},
		{"job_risk", Risk{}},
		{"job_moved", Moved{}},
		{"node_sample", Sample{}},
		{"regressor_trained", Trained{}},
		{"regressor_promoted", Promoted{}},
		{"regressor_rejected", Rejected{}},
		{"regressor_drift", Drift{}},
	}
}

// tableOfRow maps the type of a row to the name of its table.
var tableOfRow = func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for _, t := range Tables() {
		names[reflect.PointerTo(reflect.TypeOf(t.Row))] = t.Name
	}
	return names
}()

// RowOf returns the table of an event and its row, a pointer to a struct with ch tags. ok is false
// for an event without a table.
func RowOf(e Event) (table string, row any, ok bool) {
	row = e
	switch e := e.(type) {
	case *Submitted:
		row = e.row()
	case *Advice:
		row = e.row()
	}
	table, ok = tableOfRow[reflect.TypeOf(row)]
	return table, row, ok
}

// AlternativeArrays holds the alternatives of an advice as parallel arrays for ARRAY JOIN.
type AlternativeArrays struct {
	AlternativeBatchSizes    []uint32   `ch:"alternatives.batch_size"`
	AlternativeCPUs          []uint32   `ch:"alternatives.cpus"`
	AlternativeWorkers       []uint32   `ch:"alternatives.workers"`
	AlternativeEpochs        []uint32   `ch:"alternatives.epochs"`
	AlternativeSeconds       []*float64 `ch:"alternatives.predicted_seconds"`
	AlternativeAccuracies    []*float64 `ch:"alternatives.predicted_accuracy"`
	AlternativeProbabilities []*float64 `ch:"alternatives.probability"`
	AlternativeReasons       []string   `ch:"alternatives.reason"`
}

func (r *AlternativeArrays) set(alternatives []Alternative) {
	for i := range alternatives {
		alt := &alternatives[i]
		r.AlternativeBatchSizes = append(r.AlternativeBatchSizes, alt.BatchSize)
		r.AlternativeCPUs = append(r.AlternativeCPUs, alt.CPUs)
		r.AlternativeWorkers = append(r.AlternativeWorkers, alt.Workers)
		r.AlternativeEpochs = append(r.AlternativeEpochs, alt.Epochs)
		r.AlternativeSeconds = append(r.AlternativeSeconds, alt.PredictedSeconds)
		r.AlternativeAccuracies = append(r.AlternativeAccuracies, alt.PredictedAccuracy)
		r.AlternativeProbabilities = append(r.AlternativeProbabilities, alt.Probability)
		r.AlternativeReasons = append(r.AlternativeReasons, alt.Reason)
	}
}

// AdviceRow is an advice as a row, with the columns of its load and of the chosen alternative.
type AdviceRow struct {
	Advice
	Decision string `ch:"decision"` // the client of ClickHouse accepts string, but no named type
	Action   string `ch:"action"`
	Load
	Alternative
	AlternativeArrays
	LoanArrays
}

func (a *Advice) row() *AdviceRow {
	r := &AdviceRow{Advice: *a, Decision: string(a.Decision), Action: string(a.Action), Load: a.Load}
	if a.Chosen != nil {
		r.Alternative = *a.Chosen
	}
	r.AlternativeArrays.set(a.Alternatives)
	r.LoanArrays.set(a.Admission)
	return r
}

// LoanArrays are the loans of CPUs with which the policy admitted a job, as parallel arrays.
type LoanArrays struct {
	LoanJobIDs   []string `ch:"loans.job_id"`
	LoanFromCPUs []uint32 `ch:"loans.from_cpus"`
	LoanToCPUs   []uint32 `ch:"loans.to_cpus"`
}

func (r *LoanArrays) set(a *Admission) {
	if a == nil {
		return
	}
	for _, l := range a.Loans {
		r.LoanJobIDs = append(r.LoanJobIDs, l.JobID)
		r.LoanFromCPUs = append(r.LoanFromCPUs, l.FromCPUs)
		r.LoanToCPUs = append(r.LoanToCPUs, l.ToCPUs)
	}
}

// SubmittedRow is a submitted job as a row: the request and the advice that answered it.
type SubmittedRow struct {
	JobStamp
	Model             string            `ch:"model"`
	Dataset           string            `ch:"dataset"`
	Parameters        uint64            `ch:"parameters"`
	Layers            uint32            `ch:"layers"`
	TrainingSamples   uint64            `ch:"training_samples"`
	RequestCPUs       []uint32          `ch:"request_cpus"`
	RequestWorkers    []uint32          `ch:"request_workers"`
	RequestBatchSizes []uint32          `ch:"request_batch_sizes"`
	Epochs            uint32            `ch:"epochs"`
	SLOSeconds        float64           `ch:"slo_seconds"`
	Confidence        float64           `ch:"confidence"`
	Nodes             []string          `ch:"nodes"`
	User              string            `ch:"user"`
	Labels            map[string]string `ch:"labels"`
	Decision          string            `ch:"decision"`
	BatchSize         uint32            `ch:"batch_size"`
	CPUs              uint32            `ch:"cpus"`
	Workers           uint32            `ch:"workers"`
	PredictedSeconds  *float64          `ch:"predicted_seconds"`
	PredictedAccuracy *float64          `ch:"predicted_accuracy"`
	Probability       *float64          `ch:"probability"`
	AlternativeArrays
	// Verdict is the verdict of the admission policy; empty under the policy advise.
	Verdict string `ch:"verdict"`
	LoanArrays
	MayStopEarly   bool    `ch:"may_stop_early"`
	TargetAccuracy float64 `ch:"target_accuracy"`
}

func (e *Submitted) row() *SubmittedRow {
	q := &e.Request
	r := &SubmittedRow{
		JobStamp:          e.JobStamp,
		Model:             q.Model,
		Dataset:           q.Dataset,
		Parameters:        q.Parameters,
		Layers:            q.Layers,
		TrainingSamples:   q.TrainingSamples,
		RequestCPUs:       unsigned(q.CPUs),
		RequestWorkers:    unsigned(q.Workers),
		RequestBatchSizes: unsigned(q.BatchSizes),
		Epochs:            uint32(q.Epochs),
		SLOSeconds:        q.SLO.Seconds(),
		Confidence:        q.Confidence,
		Nodes:             e.Advice.Nodes,
		User:              q.User,
		Labels:            q.Labels,
		Decision:          string(e.Advice.Decision),
		MayStopEarly:      e.Advice.MayStopEarly,
		TargetAccuracy:    q.TargetAccuracy,
	}
	if e.Advice.Admission != nil {
		r.Verdict = string(e.Advice.Admission.Verdict)
	}
	r.LoanArrays.set(e.Advice.Admission)
	if c := e.Advice.Chosen; c != nil {
		r.BatchSize, r.CPUs, r.Workers = c.BatchSize, c.CPUs, c.Workers
		r.PredictedSeconds, r.PredictedAccuracy = c.PredictedSeconds, c.PredictedAccuracy
		r.Probability = c.Probability
	}
	r.AlternativeArrays.set(e.Advice.Alternatives)
	return r
}

func unsigned(list []int) []uint32 {
	out := make([]uint32, len(list))
	for i, v := range list {
		out[i] = uint32(v)
	}
	return out
}
