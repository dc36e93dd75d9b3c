package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// board contains the fields of a Grafana dashboard that the tests use.
type board struct {
	UID        string
	Templating struct{ List []struct{ Name string } }
	Panels     []struct {
		Title, Description string
		Targets            []struct{ Expr, LegendFormat, RawSQL string }
	}
}

func boards(t *testing.T) map[string]board {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards (%v)", err)
	}
	all := map[string]board{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var b board
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = b
	}
	return all
}

var (
	// exported by Prometheus and its client library
	ofProcess = []string{
		"up", "ALERTS", "process_resident_memory_bytes", "process_cpu_seconds_total",
	}
	legend     = regexp.MustCompile(`\{\{(\w+)\}\}`)
	otherNames = regexp.MustCompile(`\b(up|ALERTS|process_\w+)\{`)
	groupedBy  = regexp.MustCompile(`(?:by|on) \(([^)]*)\)`)
)

// Every variable of a query or a link is one of the dashboard.
func TestDashboards_HaveTheirVariables(t *testing.T) {
	used := regexp.MustCompile(`\$\{(\w+)`)
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := boards(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		known := []string{"__value"}
		for _, v := range all[filepath.Base(file)].Templating.List {
			known = append(known, v.Name)
			if !strings.Contains(string(text), "${"+v.Name) {
				t.Errorf("%s does not use its variable %s", file, v.Name)
			}
		}
		for _, m := range used.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s uses the variable %s, which it does not have", file, m[1])
			}
		}
	}
}

// Every metric and label of a dashboard is exported, every panel has a description, and together
// they cover the list of questions of an operator.
func TestDashboards_NameWhatIsExported(t *testing.T) {
	have, used := exported(t), map[string]bool{}
	for file, b := range boards(t) {
		for _, p := range b.Panels {
			if p.Title == "" || len(p.Description) < 10 || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has no target or no description", file, p.Title)
			}
			for _, target := range p.Targets {
				if (target.Expr == "") == (target.RawSQL == "") {
					t.Errorf("%s: %s needs exactly one of a metric and an SQL query", file, p.Title)
				}
				for _, m := range otherNames.FindAllStringSubmatch(target.Expr, -1) {
					if !slices.Contains(ofProcess, m[1]) {
						t.Errorf("%s: panel %s uses the unknown metric %s", file, p.Title, m[1])
					}
				}
				metrics, labels := namesOf(t, have, file+": "+p.Title, target.Expr)
				for _, m := range metrics {
					used[m] = true
				}
				var named []string
				for _, m := range groupedBy.FindAllStringSubmatch(target.Expr, -1) {
					named = append(named, strings.Split(m[1], ",")...)
				}
				for _, m := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					named = append(named, m[1])
				}
				for _, l := range named {
					if l = strings.TrimSpace(l); !slices.Contains(labels, l) &&
						!slices.Contains(ofScrape, l) {
						t.Errorf("%s: %s uses the label %s, which no metric in it has", file,
							p.Title, l)
					}
				}
			}
		}
	}
	for _, wanted := range []string{
		"courier_advisor_promises_total", "courier_bus_request_seconds_bucket",
		"courier_store_lag_seconds", "courier_advisor_risks_total",
		"courier_bus_dead_messages_total",
	} {
		if !used[wanted] {
			t.Errorf("no dashboard shows %s", wanted)
		}
	}
}
