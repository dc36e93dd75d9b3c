package courier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// importGraph maps each package to the packages of this repository that it may import. Tests may
// also import the packages in testOnly. Change this map in a commit of its own.
var importGraph = map[string][]string{
	".":                    {},
	"schemas":              {},
	"regress/evidence":     {"regress/treefile"},
	"regress/treefile":     {},
	"regress/baseline":     {"regress/leastsquares"},
	"regress/leastsquares": {},
	"regress/table":        {},
	"regress/anova":        {"regress/table"},
	"bus":                  {"schemas"},
	"bus/server":           {},
	"bus/bustest":          {"bus", "bus/server", "schemas"},
	"spool":                {"bus", "schemas"},
	"runner/output":        {"schemas"},
	"runner/usage":         {"schemas"},
	"runner/instrument":    {"clients/python", "runner/output", "schemas"},
	"runner/resize":        {},
	"runner": {
		"bus", "regress/evidence", "schemas", "spool", "runner/instrument", "runner/output",
		"runner/resize", "runner/usage",
	},
	"collector":               {"bus", "schemas", "spool"},
	"importer":                {"bus", "regress/table", "runner/output", "schemas"},
	"store":                   {"bus", "schemas"},
	"store/engine":            {},
	"store/engine/host":       {},
	"store/storetest":         {"store", "store/engine", "store/engine/host"},
	"store/storetest/cluster": {"store", "store/storetest"},
	"trainer": {
		"bus", "schemas", "regress/evidence", "regress/leastsquares", "regress/treefile",
	},
	"advisor/cluster": {"policy", "policy/quality", "policy/speed", "schemas"},
	"advisor/decide":  {"advisor/cluster", "regress/evidence", "regress/treefile", "schemas"},
	"advisor/shares": {
		"advisor/cluster", "advisor/decide", "policy", "policy/cost", "policy/deadline", "policy/fit",
		"policy/quality", "policy/speed", "schemas",
	},
	"advisor":             {"advisor/cluster", "advisor/decide", "advisor/shares", "bus", "schemas"},
	"advisor/advisortest": {"advisor/decide", "bus", "regress/treefile", "schemas", "trainer"},
	"gateway":             {"bus", "receipt", "schemas"},
	"explore":             {"bus", "regress/evidence", "runner", "schemas"},
	"tune":                {"runner", "schemas", "tune/halving"},
	"tune/halving":        {},
	"receipt":             {"bus", "schemas"},
	"report":              {"bus", "report/shorten", "schemas"},
	"report/columns":      {"report/shorten"},
	"report/shorten":      {},
	"report/study":        {"regress/anova", "regress/baseline", "regress/evidence", "regress/table"},
	"replay": {
		"advisor/cluster", "advisor/decide", "advisor/shares", "bus", "regress/table", "schemas",
		"trainer",
	},
	"policy":                 {"policy/speed", "schemas"},
	"policy/speed":           {"schemas"},
	"policy/speed/speedtest": {"policy/speed"},
	"policy/deadline":        {"policy"},
	"policy/elasticflow":     {"policy"},
	"simulate/elastic": {
		"policy", "policy/deadline", "policy/elasticflow", "regress/table", "schemas",
	},
	"simulate":         {"advisor/cluster", "advisor/decide", "regress/baseline", "schemas", "trainer"},
	"policy/quality":   {"policy"},
	"policy/cost":      {"policy"},
	"policy/fit":       {"policy", "policy/speed", "schemas"},
	"simulate/figures": {"policy", "policy/fit", "policy/quality", "policy/speed", "tune/halving"},
	"simulate/live":    {"advisor", "bus", "schemas"},
	"demo": {
		"bus", "collector", "runner", "schemas", "services",
	},
	"clients/python":    {"bus", "schemas", "services/certs"},
	"deploy":            {},
	"deploy/containers": {},
	"workloads/digits":  {},
	"services/certs":    {"bus", "schemas"},
	"services":          {"schemas", "spool"},
	"services/doctor":   {"bus", "schemas", "spool"},
	"services/top":      {"bus", "report", "report/columns", "schemas"},
	"services/local": {
		"advisor", "bus", "bus/server", "collector", "gateway", "schemas", "services", "store",
		"store/engine",
	},
	"services/courier": {
		"services", "services/certs", "services/doctor", "services/local", "services/top",
		"schemas", "bus", "bus/server", "spool",
		"runner", "runner/output", "collector", "importer", "store", "store/engine",
		"store/engine/host", "trainer", "advisor", "advisor/shares", "gateway", "regress/table",
		"report", "report/columns", "report/study",
		"explore", "receipt", "replay", "simulate", "demo",
		"policy", "simulate/elastic", "simulate/figures",
		"tune", "workloads/digits",
	},
}

// testOnly are packages that any test may import.
var testOnly = []string{
	"advisor", "advisor/advisortest", "advisor/cluster", "advisor/decide", "advisor/shares", "bus/bustest",
	"store/storetest", "store/storetest/cluster", "bus/server",
	"store/engine", "store/engine/host", "policy/cost", "policy/deadline",
	"policy/elasticflow", "policy/fit", "policy/speed/speedtest",
	"policy/quality", "policy/speed", "report/columns", "runner", "runner/usage",
}

// modules maps each third-party module to the packages that may import it.
var modules = map[string][]string{
	"github.com/go-json-experiment/json":  {"schemas"},
	"github.com/nats-io/nats.go":          {"bus"},
	"github.com/synadia-io/orbit.go":      {"bus"},
	"github.com/nats-io/nats-server/v2":   {"bus/server"},
	"github.com/ClickHouse/clickhouse-go": {"store", "store/storetest"},
	"github.com/ebitengine/purego":        {"store/engine/host", "store/storetest"},
	"github.com/prometheus/node_exporter": {"collector"},
	"github.com/alecthomas/kingpin":       {"collector"},
	"github.com/creack/pty":               {"runner", "store/engine/host"},
	"github.com/go-faster/city":           {"store"},
	"github.com/dmitryikh/leaves":         {"regress/treefile"},
	"gonum.org/v1/gonum": {
		"explore", "regress/anova", "regress/baseline", "regress/evidence", "regress/leastsquares",
	},
	"golang.org/x/sync": {
		"advisor", "gateway", "regress/baseline", "regress/evidence", "services", "services/courier",
		"simulate/figures", "trainer",
	},
	"github.com/alecthomas/kong": {"services/courier"},
	"charm.land/bubbletea":       {"services/top"},
	"github.com/prometheus/client_golang": {
		"bus",
		"collector",
		"store",
		"store/engine",
		"trainer",
		"advisor",
		"gateway",
		"services",
		"services/courier",
		"services/local",
	},
	"github.com/prometheus/client_model": {"collector", "services"},
	"github.com/prometheus/common":       {"collector", "services"},
	"github.com/prometheus/procfs":       {"collector"},
	"golang.org/x/sys": {
		"store/engine",
		"store/engine/host",
		"store/storetest",
		"spool",
		"runner",
		"runner/usage",
		"collector",
		"services",
	},
	"golang.org/x/term":             {"runner", "services"},
	"github.com/klauspost/compress": {"gateway"},
	"golang.org/x/time":             {"gateway"},
	"github.com/nats-io/nkeys":      {"services/certs"},
}

// testModules may be imported by any test.
var testModules = []string{
	"github.com/chromedp", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "go.yaml.in/yaml/v3",
	"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nkeys",
	"gonum.org/v1/gonum",
	"github.com/prometheus/client_golang", "golang.org/x/sys", "golang.org/x/term",
	"github.com/creack/pty", "golang.org/x/sync", "golang.org/x/tools",
}

const module = "courier"

// goFile is a parsed file of the repository.
type goFile struct {
	path string
	pkg  string // directory of its package
	test bool
	file *ast.File
}

func goFiles(t *testing.T) []goFile {
	var all []goFile
	for _, path := range filesWith(t, ".go") {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, goFile{
			path,
			filepath.ToSlash(filepath.Dir(path)),
			strings.HasSuffix(path, "_test.go"),
			f,
		})
	}
	return all
}

func TestImports_FollowTheGraph(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range goFiles(t) {
		allowed, known := importGraph[s.pkg]
		if !known {
			t.Errorf("%s: package %s is not in importGraph", s.path, s.pkg)
			continue
		}
		seen[s.pkg] = true
		for _, spec := range s.file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if reason := importRefusal(s, path, allowed); reason != "" {
				t.Errorf("%s imports %s: %s", s.path, path, reason)
			}
		}
	}
	for pkg := range importGraph {
		if !seen[pkg] {
			t.Errorf("importGraph has the package %s, which does not exist", pkg)
		}
	}
}

// importRefusal returns why a file may not import a path; empty if it may.
func importRefusal(s goFile, path string, allowed []string) string {
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		switch {
		case slices.Contains(allowed, rest), rest == s.pkg:
			return ""
		case s.test && slices.Contains(testOnly, rest):
			return ""
		case s.test && s.pkg == ".":
			return ""
		}
		return "importGraph does not allow it"
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for m, packages := range modules {
		if path == m || strings.HasPrefix(path, m+"/") {
			if slices.Contains(packages, s.pkg) || s.test && slices.Contains(testModules, m) {
				return ""
			}
			return "only these packages may import the module: " + strings.Join(packages, ", ")
		}
	}
	for _, m := range testModules {
		if s.test && (path == m || strings.HasPrefix(path, m+"/")) {
			return ""
		}
	}
	return "the module is not in the list of modules"
}

func TestImports_EveryPackageHasAPackageComment(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range goFiles(t) {
		if s.file.Doc != nil && len(s.file.Doc.Text()) > 40 {
			documented[s.pkg] = true
		}
	}
	for pkg := range importGraph {
		if !documented[pkg] {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// Subjects are written in schemas only, and no code waits with time.Sleep.
func TestImports_SubjectsAndSleeps(t *testing.T) {
	for _, s := range goFiles(t) {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "time."+"Sleep(") {
			t.Errorf("%s calls time.Sleep: wait for the event instead", s.path)
		}
		if s.test || s.pkg == "schemas" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				for _, prefix := range []string{`"job.`, `"node.`, `"regressor.`, `"dead.`} {
					if strings.HasPrefix(lit.Value, prefix) && !slices.Contains([]string{
						`.txt"`, `.json"`, `.html"`,
					}, filepath.Ext(lit.Value)) {
						t.Errorf("%s has the subject %s: use the one of schemas", s.path,
							lit.Value)
					}
				}
			}
			return true
		})
	}
}
