package store_test

import (
	"flag"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the answers in docs/cookbook.md and the golden files again")

const cookbook = "../docs/cookbook.md"

// recipe matches a recipe of the cookbook: its heading, its SQL and its result.
var recipe = regexp.MustCompile("(?ms)^### ([^\n]+)\n(?:[^#`\n][^\n]*\n|\n)*```sql\n(.*?)```\n\n```\n(.*?)```\n")

// The test runs every query of the cookbook over HTTP, like curl, on a fortnight that the store
// has written, and compares the results.
func TestCookbook_MatchesTheEngine(t *testing.T) {
	if !slices.Contains(storetest.Protocols(t), "http") {
		t.Skip("the server is not known to speak HTTP")
	}
	address := storetest.Address(t, "http")
	d := storetest.Open(t, address)
	must(t, d.Migrate(t.Context()))
	loadFortnight(t, d)
	text, err := os.ReadFile(cookbook)
	must(t, err)
	all, asked, seen := string(text), "", make(map[string]bool)
	for _, r := range recipe.FindAllStringSubmatch(string(text), -1) {
		heading, question, want := r[1], r[2], r[3]
		if seen[heading] {
			t.Errorf("%s: there are two", heading)
		}
		seen[heading] = true
		asked += question
		got := curl(t, address, question)
		if lines := strings.Count(got, "\n"); lines < 3 {
			t.Errorf("%s: the answer is empty", heading)
		}
		if *update {
			all = strings.Replace(
				all,
				"```sql\n"+question+"```\n\n```\n"+want,
				"```sql\n"+question+"```\n\n```\n"+got,
				1,
			)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf(
				"%s (-in the cookbook +answered; go test ./store -run Cookbook -update writes it):\n%s",
				heading,
				diff,
			)
		}
	}
	if *update {
		must(t, os.WriteFile(cookbook, []byte(all), 0o644))
	}
	if n := strings.Count(string(text), "```sql\n"); len(seen) != n || n < 15 {
		t.Errorf("%d of %d questions are understood, want all, and 15 or more", len(seen), n)
	}
	for _, view := range views(t, d) {
		if !strings.Contains(asked, "FROM "+view+"\n") && !strings.Contains(asked, "FROM "+view+" ") {
			t.Errorf("no question asks the view %s", view)
		}
		if !strings.Contains(string(text), "| `"+view+"` |") {
			t.Errorf("the cookbook's list does not have the view %s", view)
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
func views(t testing.TB, d *store.Database) (names []string) {
	t.Helper()
	var rows []struct {
		Name string `ch:"name"`
	}
	must(
		t,
		d.Query(
			t.Context(),
			&rows,
			"SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View' ORDER BY name",
		),
	)
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

// DESCRIBE shows what a view is for, and explains its columns.
func TestViews_AreDescribed(t *testing.T) {
	d := storetest.New(t)
	for _, view := range views(t, d) {
		comments := ask(
			t,
			d,
			"SELECT toUInt64(comment != '') AS n FROM system.tables WHERE database = currentDatabase() AND name = ?",
			view,
		)
		columns := ask(
			t,
			d,
			"SELECT countIf(comment != '') AS n FROM system.columns WHERE database = currentDatabase() AND table = ?",
			view,
		)
		if comments != 1 || columns < 4 {
			t.Errorf(
				"%s: %d comments of the view and %d of its columns, want one and 4 or more",
				view,
				comments,
				columns,
			)
		}
	}
	migrations, err := schemas.Migrations()
	must(t, err)
	commented := regexp.MustCompile(`COMMENT COLUMN IF EXISTS (\w+)`)
	for _, m := range migrations {
		for _, s := range m.Statements {
			for _, c := range commented.FindAllStringSubmatch(s, -1) {
				table := strings.Fields(s)[2]
				if ask(
					t,
					d,
					"SELECT count() AS n FROM system.columns WHERE database = currentDatabase() AND table = ? AND name = ?",
					table,
					c[1],
				) != 1 {
					t.Errorf("%s comments %s.%s, which is not there", m.Name, table, c[1])
				}
			}
		}
	}
}

// curl runs a query over HTTP and returns a formatted table.
func curl(t testing.TB, address, question string) string {
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
	response, err := client.Post(u.String(), "text/plain", strings.NewReader(question))
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s", question, answer)
	}
	return string(answer)
}
