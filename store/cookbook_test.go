package store_test

import (
	"flag"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the answers in docs/cookbook and the golden files")

// cookbookIndex lists the questions and views, cookbookPages contain the queries and answers.
const (
	cookbookIndex = "../docs/cookbook.md"
	cookbookPages = "../docs/cookbook/*.md"
)

// recipe matches a question of the cookbook: its heading, its SQL and its answer.
var recipe = regexp.MustCompile(
	"(?ms)^## ([^\n]+)\n(?:[^#`\n][^\n]*\n|\n)*```sql\n(.*?)```\n\n```\n(.*?)```\n",
)

func readCookbook(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(cookbookPages)
	must(t, err)
	pages := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		pages[file] = string(text)
	}
	return pages
}

// TestCookbook_AnswersMatchTheEngine runs every query of the cookbook over HTTP, as curl does, on a
// fortnight of events that went through the store.
func TestCookbook_AnswersMatchTheEngine(t *testing.T) {
	t.Parallel()
	native := storetest.Address(t)
	address := storetest.OverHTTP(t, native)
	d := storetest.Open(t, native)
	must(t, d.Migrate(t.Context()))
	loadFortnight(t, d)

	index, err := os.ReadFile(cookbookIndex)
	must(t, err)
	queries, questions, blocks := "", map[string]bool{}, 0
	for file, page := range readCookbook(t) {
		blocks += strings.Count(page, "```sql\n")
		updated := page
		for _, r := range recipe.FindAllStringSubmatch(page, -1) {
			heading, query, want := r[1], r[2], r[3]
			if questions[heading] {
				t.Errorf("%s: duplicate question %s", file, heading)
			}
			questions[heading] = true
			queries += query
			if !strings.Contains(string(index), "- ["+heading+"](") {
				t.Errorf("%s does not list the question %s", cookbookIndex, heading)
			}

			got := curl(t, address, query)
			if lines := strings.Count(got, "\n"); lines < 3 {
				t.Errorf("%s: the answer is empty", heading)
			}
			begin := "```sql\n" + query + "```\n\n```\n"
			updated = strings.Replace(updated, begin+want, begin+got, 1)
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("%s: %s (-page +engine; go test ./store -run Cookbook -update):\n%s",
					file, heading, diff)
			}
		}
		if *update {
			must(t, os.WriteFile(file, []byte(updated), 0o644))
		}
	}

	if len(questions) != blocks || blocks < 15 {
		t.Errorf("parsed %d of %d questions, want all, and at least 15", len(questions), blocks)
	}
	for _, view := range views(t, d) {
		if !strings.Contains(queries, "FROM "+view+"\n") && !strings.Contains(queries, "FROM "+view+" ") {
			t.Errorf("no question queries the view %s", view)
		}
		if !strings.Contains(string(index), "| `"+view+"` |") {
			t.Errorf("%s does not list the view %s", cookbookIndex, view)
		}
	}
}

// loadFortnight writes two weeks with fixed dates.
func loadFortnight(t testing.TB, d *store.Database) {
	t.Helper()
	keepForever(t, d)
	w := newStore(t, nil, d)
	jobs, samples, regressors := twoWeeks()
	write(t, w, batch(schemas.StreamJob, 1, jobs...))
	write(t, w, batch(schemas.StreamNode, 1, samples...))
	write(t, w, batch(schemas.StreamRegressor, 1, regressors...))
}

// keepForever removes the TTL of the tables, which is relative to today.
func keepForever(t testing.TB, d *store.Database) {
	t.Helper()
	for _, table := range []string{"node_sample", "node_minute", "node_hour"} {
		must(t, d.Exec(t.Context(), "ALTER TABLE "+table+" REMOVE TTL"))
	}
}

// views returns the views of a database that users query.
func views(t testing.TB, d *store.Database) []string {
	t.Helper()
	return values[string](t, d, "SELECT name FROM system.tables "+
		"WHERE database = currentDatabase() AND engine = 'View' ORDER BY name")
}

// DESCRIBE shows what a view is for, and explains its columns.
func TestViews_AreDescribed(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	for _, view := range views(t, d) {
		comments := selectNumber(t, d,
			"SELECT toUInt64(comment != '') AS n FROM system.tables WHERE database = currentDatabase() AND name = ?",
			view)
		columns := selectNumber(t, d,
			"SELECT countIf(comment != '') AS n FROM system.columns WHERE database = currentDatabase() AND table = ?",
			view)
		if comments != 1 || columns < 4 {
			t.Errorf("%s: %d comments of the view and %d of its columns, want one and 4 or more",
				view, comments, columns)
		}
	}
}

// curl runs a query over HTTP and returns a formatted table.
func curl(t testing.TB, address, query string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	u.RawQuery = url.Values{
		"database":                         {strings.TrimPrefix(u.Path, "/")},
		"default_format":                   {"PrettyCompactMonoBlock"},
		"wait_end_of_query":                {"1"},
		"output_format_pretty_color":       {"0"},
		"output_format_pretty_row_numbers": {"0"},
	}.Encode()
	u.Path = "/"
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post(u.String(), "text/plain", strings.NewReader(query))
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s", query, answer)
	}
	return string(answer)
}

func TestViews_ShowTheStateOfAJob(t *testing.T) {
	t.Parallel()
	type line struct {
		State  string   `ch:"state"`
		Run    uint32   `ch:"run"`
		Epochs uint32   `ch:"epochs_done"`
		Met    *bool    `ch:"met_slo"`
		Took   *float64 `ch:"response_seconds"`
		Short  bool     `ch:"incomplete"`
	}
	yes, no := true, false
	tests := []struct {
		name  string
		slo   time.Duration
		steps string // after the submission
		want  line
	}{
		{"only-submitted", time.Minute, "", line{State: "submitted"}},
		{"running", time.Minute, "start epoch", line{State: "running", Run: 1, Epochs: 1}},
		{"in-time", time.Minute, "job-finished", line{"finished", 1, 3, &yes, pointer(6.000000042), false}},
		{
			"work-after-the-last-epoch", 4500 * time.Millisecond, "start epoch epoch epoch finished",
			line{"finished", 1, 3, &yes, pointer(4.000000028), false},
		},
		{
			"cancelled-while-running", time.Minute, "start cancelled",
			line{"cancelled", 1, 0, nil, pointer(2.000000014), false},
		},
		{"lost-with-slo", time.Minute, "start lost", line{"lost", 1, 0, nil, pointer(2.000000014), false}},
		{"too-late", 2 * time.Second, "job-finished", line{"finished", 1, 3, &no, pointer(6.000000042), false}},
		{"without-slo", 0, "job-finished", line{"finished", 1, 3, nil, pointer(6.000000042), false}},
		{"failed", time.Minute, "job-failed", line{"failed", 1, 3, &no, pointer(6.000000042), false}},
		{"without-epochs", time.Minute, "start incomplete", line{"finished", 1, 0, nil, pointer(2.000000014), true}},
		{
			"with-too-few-epochs", time.Minute, "start epoch incomplete",
			line{"finished", 1, 1, nil, pointer(3.000000021), true},
		},
		{
			"finished-early", time.Minute, "may-stop-early start epoch incomplete",
			line{"finished", 1, 1, &yes, pointer(3.000000021), false},
		},
		{
			"stopped-although-it-may-finish-early", time.Minute, "may-stop-early start epoch incomplete stopped",
			line{"finished", 1, 1, nil, pointer(3.000000021), true},
		},
		{
			"reached-its-target", time.Minute, "target start epoch incomplete",
			line{"finished", 1, 1, &yes, pointer(3.000000021), false},
		},
		{
			"missed-its-target", time.Minute, "higher-target start epoch epoch epoch finished",
			line{"finished", 1, 3, &yes, pointer(4.000000028), false},
		},
		{"cancelled-before-start", time.Minute, "cancelled", line{"cancelled", 0, 0, nil, pointer(1.000000007), false}},
		{"lost", 0, "start lost", line{"lost", 1, 0, nil, pointer(2.000000014), false}},
		{"lost-and-found", 0, "start lost epoch", line{State: "running", Run: 1, Epochs: 1}},
		{
			"late-epoch-of-a-finished-run", 0, "job-finished epoch",
			line{"finished", 1, 4, nil, pointer(11.000000077), false},
		},
		{"started-again", time.Minute, "job-failed start", line{State: "running", Run: 2}},
	}
	d := storetest.New(t)
	s := newTestLog()
	inPromises := map[string]bool{
		"in-time": true, "work-after-the-last-epoch": true, "too-late": true, "failed": true,
		"finished-early": true, "reached-its-target": true, "started-again": true, "missed-its-target": true,
	}
	for _, test := range tests {
		s.steps(test.name, test.slo, test.steps)
	}
	for _, e := range s.events {
		if end, isEnd := e.(*schemas.Ended); isEnd && end.JobID == "in-time" {
			end.Workers = 1 // a client may report a single worker as 0 or 1
		}
	}
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []line
			must(t, d.Query(t.Context(), &got,
				"SELECT state, run, epochs_done, met_slo, response_seconds, incomplete FROM jobs WHERE job_id = ?",
				test.name))
			if diff := cmp.Diff([]line{test.want}, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if met := test.want.Met; met != nil { // jobs, promises and the advisor judge the same moment
				kept := selectNumber(t, d, "SELECT countIf(kept) FROM promises WHERE job_id = ?", test.name)
				if want := *met && test.name != "missed-its-target"; (kept == 1) != want {
					t.Errorf("kept in promises: got %d, want %t", kept, want)
				}
			}
			promises := selectNumber(t, d, "SELECT count() FROM promises WHERE job_id = ?", test.name)
			if listed := promises == 1; listed != inPromises[test.name] {
				t.Errorf("listed in promises: got %t, want %t", listed, inPromises[test.name])
			}
		})
	}
}

// steps adds the submission of a job and the events that steps names.
func (s *testLog) steps(job string, slo time.Duration, steps string) {
	run, epochs := uint32(0), uint32(0)
	if outcome, whole := strings.CutPrefix(steps, "job-"); whole {
		outcome, steps, _ = strings.Cut(outcome, " ")
		s.job(job, slo, outcome)
		run, epochs = 1, 3
	} else {
		s.submitted(job, slo)
	}
	for _, step := range strings.Fields(steps) {
		last := s.events[len(s.events)-1]
		switch step {
		case "may-stop-early":
			last.(*schemas.Submitted).Advice.MayStopEarly = true
		case "target":
			last.(*schemas.Submitted).Request.TargetAccuracy = 0.8
		case "higher-target":
			last.(*schemas.Submitted).Request.TargetAccuracy = 0.99
		case "stopped":
			last.(*schemas.Ended).Reason = "stopped after epoch 1"
		case "start":
			run++
			s.started(job, run)
		case "epoch":
			epochs++
			s.epoch(job, run, epochs)
		case "incomplete":
			s.incomplete(job, epochs)
		default:
			s.ended(job, run, step)
		}
	}
}

// Every view with a model also has the dataset. Drift is reported for a model on a dataset.
func TestViews_HaveTheDataset(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	s.job("mlp-1", time.Minute, schemas.EventFinished)
	jobs := s.events
	s.events = nil
	at := time.Unix(1_790_000_000, 0).UTC()
	drift := &schemas.Drift{
		Stamp: s.stamp(schemas.DriftID("epoch_time", 7, "scope")), Target: "epoch_time", CauseSequence: 7,
		ModelDigest: "abc", State: schemas.DriftActive,
		Scope: schemas.DriftModel, Model: "digits-mlp", Dataset: "digits",
		SinceAt: at, Ratio: 1.25, BeforeRatio: 1,
	}
	s.add(drift)
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, jobs...))
	write(t, newStore(t, nil, d), batch(schemas.StreamRegressor, 1, s.events...))
	for _, view := range []string{"jobs", "promises", "epochs", "advice", "alternatives"} {
		got := values[string](t, d, "SELECT DISTINCT concat(model, ' on ', dataset) FROM "+view)
		if diff := cmp.Diff([]string{"digits-mlp on digits"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view, diff)
		}
	}
	for _, view := range []string{"drifts", "regressor_life"} {
		got := values[string](t, d, "SELECT toString(drifted) FROM "+view)
		if diff := cmp.Diff([]string{"digits-mlp on digits"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view, diff)
		}
	}
}
