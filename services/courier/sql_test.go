package main

import (
	"encoding/csv"
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/services/local"
	"courier/store"
	"courier/store/storetest"
)

// sqlData returns a data directory of a courier all for courier sql, with a real engine and
// migrated tables.
func sqlData(t *testing.T) string {
	t.Helper()
	e := storetest.Engine(t)
	u, err := url.Parse(e.NativeURL)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(e.User, e.Password), "/"+e.Database
	d := storetest.Open(t, u.String())
	if err := d.Migrate(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"TRUNCATE TABLE job_submitted",
		"INSERT INTO job_submitted (event_id, at, job_id, model, slo_seconds, predicted_seconds)" +
			" VALUES ('a', '2026-03-02 08:00:00', 'morning', 'lenet5', 600, 412.5), ('b'," +
			" '2026-03-02 20:00:00', 'night, late', 'lenet5', 0, NULL)",
	} {
		if err := d.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	data := t.TempDir()
	text, err := json.Marshal(local.Endpoints{
		ClickHouseHTTPURL: e.HTTPURL, ClickHouseDatabase: e.Database, ClickHouseUser: e.ReaderUser,
		ClickHousePassword: e.ReaderPassword,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(data, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "run", "endpoints.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

// sqlRun runs courier sql with a command line.
func sqlRun(t *testing.T, data string, args ...string) (string, error) {
	t.Helper()
	return courier(t, append([]string{"sql", "--data", data}, args...)...)
}

// withStdin makes a file the standard input of the program.
func withStdin(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = before; _ = f.Close() })
}

const someQuestion = "SELECT job_id, slo_seconds, predicted_seconds, met_slo FROM jobs ORDER BY" +
	" submitted_at;"

func TestSQL_PrintsTableCSVAndJSON(t *testing.T) {
	data := sqlData(t)
	table, err := sqlRun(t, data, someQuestion)
	want := `┌─job_id──────┬─slo_seconds─┬─predicted_seconds─┬─met_slo─┐
│ morning     │         600 │             412.5 │ ᴺᵁᴸᴸ    │
│ night, late │           0 │              ᴺᵁᴸᴸ │ ᴺᵁᴸᴸ    │
└─────────────┴─────────────┴───────────────────┴─────────┘
`
	if err != nil || table != want {
		t.Errorf("as a table: %v\n%s\nwant\n%s", err, table, want)
	}
	text, err := sqlRun(t, data, "-o", "csv", someQuestion)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][0] != "job_id" || rows[2][0] != "night, late" ||
		rows[1][2] != "412.5" {
		t.Errorf("CSV: error %v, rows %q; want a header and two jobs", err, rows)
	}
	lines, err := sqlRun(t, data, "-o", "json", someQuestion)
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		JobID     string   `json:"job_id"`
		SLO       *float64 `json:"slo_seconds"`
		Predicted *float64 `json:"predicted_seconds"`
	}
	objects := strings.Split(strings.TrimSpace(lines), "\n")
	if err := json.Unmarshal([]byte(objects[len(objects)-1]), &last); err != nil ||
		len(objects) != 2 || last.JobID != "night, late" || last.SLO == nil ||
		last.Predicted != nil {
		t.Errorf("JSON lines: error %v, want two jobs: %s", err, lines)
	}
}

func TestSQL_TakesTheStatementFromInput(t *testing.T) {
	data := sqlData(t)
	const question = "-- how many?\nSELECT count() AS n\nFROM jobs;\n"
	for _, args := range [][]string{
		{"SELECT count() AS n FROM jobs"},
		{"-"},
		{},
	} {
		withStdin(t, question)
		if got, err := sqlRun(t, data, append(args, "-o", "csv")...); err != nil ||
			got != "\"n\"\n2\n" {
			t.Errorf("courier sql %q = %q, %v, want 2", args, got, err)
		}
	}
	for _, c := range []struct {
		stdin, want string
		args        []string
	}{
		{"", "the standard input is empty", []string{"-"}},
		{strings.Repeat(" ", longestStatement) + "SELECT 1", "longer than", nil},
	} {
		withStdin(t, c.stdin)
		if _, err := sqlRun(t, data, c.args...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("courier sql %q = %v, want an error with %q", c.args, err, c.want)
		}
	}
}

func TestSQL_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	data := sqlData(t)
	for _, c := range []struct{ statement, want string }{
		{"SELECT * FROM job", "clickhouse: Unknown table expression identifier 'job'"},
		{"SELECT nothing FROM jobs", "clickhouse: Unknown expression identifier `nothing`"},
		{"SELEC 1", "Syntax error"},
		{"INSERT INTO job_epoch (job_id) VALUES ('x')", "grant INSERT"},
		{"DROP TABLE job_epoch", "grant DROP"},
		{"SELECT * FROM system.users", "Not enough privileges"},
		{
			"SELECT sleepEachRow(1) FROM numbers(9) SETTINGS max_execution_time = 1," +
				" max_block_size = 1",
			"Timeout exceeded",
		},
		{
			"SELECT count() FROM (SELECT number, count() FROM numbers(100000000) GROUP BY" +
				" number) SETTINGS max_memory_usage = 100000000," +
				" max_bytes_ratio_before_external_group_by = 0",
			"maximum: 95.37 MiB",
		},
		{
			"SELECT groupArray(number) FROM numbers(1000000000)",
			"maximum: 512.00 MiB",
		},
		{"SELECT 1 SETTINGS max_execution_time = 0", "max_execution_time shouldn't be less than"},
		{
			"SELECT 1 SETTINGS max_execution_time = 601",
			"max_execution_time shouldn't be greater than 600",
		},
		{"SELECT 1 SETTINGS max_memory_usage = 0", "max_memory_usage shouldn't be less than"},
		{"SELECT 1 SETTINGS readonly = 0", "readonly"},
		{"SELECT number, throwIf(number = 3000000, 'midway') FROM numbers(10000000)", "midway"},
	} {
		got, err := sqlRun(t, data, c.statement)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant an error with %q", c.statement, err, c.want)
		}
		if got != "" {
			t.Errorf("%s: printed %.80q before it failed", c.statement, got)
		}
	}
}

func TestSQL_LimitsTheReader(t *testing.T) {
	got, err := sqlRun(t, sqlData(t), "-o", "csv",
		"SELECT name, value FROM system.settings WHERE name IN ('max_execution_time',"+
			" 'max_memory_usage', 'readonly') ORDER BY name")
	want := "\"name\",\"value\"\n\"max_execution_time\",\"60\"\n" +
		"\"max_memory_usage\",\"536870912\"\n\"readonly\",\"2\"\n"
	if err != nil || got != want {
		t.Errorf("settings of the reader: %v\n%s\nwant\n%s", err, got, want)
	}
}

// clickhouse-go, which Grafana uses, requests a time limit of its deadline plus five seconds.
func TestSQL_ClickHouseGoMayReadWithADeadline(t *testing.T) {
	sqlData(t)
	e := storetest.Engine(t)
	u, err := url.Parse(e.NativeURL)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(e.ReaderUser, e.ReaderPassword), "/"+e.Database
	d, err := store.Open(t.Context(), store.Options{
		URL:     u.String(),
		Timeout: time.Minute,
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := count(t, d, "SELECT count() AS n FROM jobs"); err != nil || n != 2 {
		t.Errorf("%d, %v, want 2 jobs", n, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// The help lists exactly the views of the engine.
func TestSQL_HelpListsTheViews(t *testing.T) {
	help, _ := courier(t, "sql", "--help") // it ends as an exit status
	got, err := sqlRun(t, sqlData(t), "-o", "csv",
		"SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View'")
	if err != nil {
		t.Fatal(err)
	}
	views := strings.Fields(strings.ReplaceAll(got, `"`, ""))[1:]
	if len(views) < 10 {
		t.Fatalf("views of the engine = %q", views)
	}
	for _, view := range views {
		if !strings.Contains(help, " "+view+" ") {
			t.Errorf("courier sql --help does not name %s:\n%s", view, help)
		}
	}
}
