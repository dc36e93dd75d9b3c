package store_test

import (
	"flag"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	if !slices.Contains(storetest.Protocols(t), "http") {
		t.Skip("the server has no known HTTP address")
	}
	address := storetest.Address(t, "http")
	d := storetest.Open(t, address)
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
