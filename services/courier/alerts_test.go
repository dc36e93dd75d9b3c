package main

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/bus/bustest"
	"courier/collector"
	"courier/gateway"
	"courier/services"
	"courier/store"
	"courier/store/engine"
	"courier/trainer"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

const alertsFile = "../../deploy/prometheus/alerts.yml"

// exported returns all metrics of the registries of the services with their labels, including those
// without a value.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	reg, log := services.NewRegistry(), slog.New(slog.DiscardHandler)
	b, err := bus.Connect(within(t, patience), bus.Options{
		URL: bustest.NewServer(t).URL(),
	}, log, reg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBus(b) })
	d, err := store.Open(t.Context(), store.Options{
		URL: "clickhouse://127.0.0.1:1/courier",
	}, log, reg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // it has no connection
	store.New(b, d, log, reg, store.Options{})
	advisor.New(b, advisor.Options{}, log, reg)
	trainer.New(b, nil, trainer.Options{}, log, reg)
	if _, err := collector.New(b, collector.Options{Node: "node-a"}, log, reg); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.New(b, gateway.Options{Gatherer: reg}, log, reg); err != nil {
		t.Fatal(err)
	}
	services.NewChild(services.ChildOptions{Name: "trainer"}, log, reg)
	if _, err := engine.New(engine.Options{DataDir: t.TempDir()}, log, reg); err != nil {
		t.Fatal(err)
	}
	return described(reg)
}

var (
	description = regexp.MustCompile(
		`^Desc\{fqName: "(\w+)", help: .*, constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`,
	)
	label = regexp.MustCompile(`(\w+)(?:=|,|$)`)
)

// described returns the descriptions of the metrics of a registry.
func described(reg *prometheus.Registry) map[string][]string {
	all := map[string][]string{}
	found := make(chan *prometheus.Desc)
	go func() { reg.Describe(found); close(found) }()
	for d := range found {
		if m := description.FindStringSubmatch(d.String()); m != nil {
			all[m[1]] = []string{}
			for _, list := range m[2:] {
				for _, l := range label.FindAllStringSubmatch(list, -1) {
					all[m[1]] = append(all[m[1]], l[1])
				}
			}
		}
	}
	return all
}

// ruleFile is a file of alerting rules of Prometheus.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

var (
	ofCourier = regexp.MustCompile(`\b(courier_\w+)(?:\{([^}]*)\})?`)
	matcher   = regexp.MustCompile(`(\w+)\s*(?:=|!=|=~|!~)\s*"`)
	grouped   = regexp.MustCompile(`by \(([^)]*)\)`)
	suffix    = regexp.MustCompile(`_(bucket|sum|count)$`)
	ofScrape  = []string{"job", "instance", "le"} // Prometheus adds them, or the histogram
)

// namesOf returns the Courier metrics in a Prometheus expression. It checks that each is exported
// and has the labels that the expression uses.
func namesOf(t *testing.T, have map[string][]string, where, expr string) (metrics, labels []string) {
	t.Helper()
	for _, m := range ofCourier.FindAllStringSubmatch(expr, -1) {
		own, known := have[m[1]]
		if !known {
			own, known = have[suffix.ReplaceAllString(m[1], "")]
		}
		if !known {
			t.Errorf("%s names %s, which no service exports", where, m[1])
		}
		if strings.HasPrefix(m[1], "courier_store_") {
			own = append(slices.Clone(own), "shard") // of a store on a ClickHouse cluster
		}
		metrics, labels = append(metrics, m[1]), append(labels, own...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(own, l[1]) {
				t.Errorf("%s uses the label %s, which %s does not have", where, l[1], m[1])
			}
		}
	}
	return metrics, labels
}

// Every metric and label in a rule is exported, and every rule has a severity and instructions.
func TestAlerts_NameWhatIsExported(t *testing.T) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var f ruleFile
	if err := yaml.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	fires, err := os.ReadFile(strings.Replace(alertsFile, ".yml", "_test.yml", 1)) // for promtool
	if err != nil {
		t.Fatal(err)
	}
	have, rules := exported(t), 0
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			rules++
			if !strings.Contains(string(fires), `ALERTS{alertname="`+r.Alert+`"`) {
				t.Errorf("%s has no test of its firing", r.Alert)
			}
			_, labels := namesOf(t, have, r.Alert, r.Expr)
			for _, m := range grouped.FindAllStringSubmatch(r.Expr, -1) {
				for _, l := range strings.Split(m[1], ",") {
					if l = strings.TrimSpace(l); !slices.Contains(labels, l) &&
						!slices.Contains(ofScrape, l) {
						t.Errorf("%s groups by the label %s, which no metric in it has", r.Alert, l)
					}
				}
			}
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("severity of %s = %q, want warning or critical", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 60 {
				t.Errorf("%s has no summary or a description of less than 60 bytes", r.Alert)
			}
			if _, err := time.ParseDuration(r.For); err != nil {
				t.Errorf("%s: field for is not a duration: %v", r.Alert, err)
			}
			for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(
				r.Annotations["summary"], -1,
			) {
				if !slices.Contains(labels, m[1]) && !slices.Contains(ofScrape, m[1]) {
					t.Errorf("%s prints the label %s, which no metric in it has", r.Alert, m[1])
				}
			}
		}
	}
	if rules < 10 {
		t.Errorf("%d rules, want at least 10", rules)
	}
}
