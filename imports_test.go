package courier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is the picture of who may import whom: a package, and what of the house
// it may import. Tests may also import what stands in forTests. A change of this
// map is alone in its commit.
var house = map[string][]string{
	".":                           {},
	"schemas":                     {},
	"regress":                     {},
	"regress/evidence":            {},
	"regress/table":               {"regress"},
	"bus":                         {"schemas"},
	"bus/server":                  {},
	"bus/bustest":                 {"bus", "bus/server", "schemas"},
	"spool":                       {"bus", "schemas"},
	"runner/output":               {"schemas"},
	"runner/usage":                {"schemas"},
	"runner":                      {"bus", "schemas", "spool", "runner/output", "runner/usage"},
	"collector":                   {"bus", "schemas", "spool"},
	"importer":                    {"runner/output", "schemas"},
	"store":                       {"bus", "schemas"},
	"store/engine":                {},
	"store/engine/host":           {},
	"store/storetest":             {"store", "store/engine", "store/engine/host"},
	"trainer":                     {"bus", "schemas", "regress", "regress/evidence"},
	"advisor":                     {"bus", "schemas", "regress", "regress/evidence"},
	"gateway":                     {"bus", "schemas"},
	"report":                      {"bus", "regress", "regress/table", "schemas", "trainer"},
	"replay":                      {"advisor", "bus", "regress", "schemas", "simulate", "trainer"},
	"simulate":                    {"advisor", "regress", "schemas", "trainer"},
	"simulate/drift":              {"advisor", "regress", "schemas", "simulate", "trainer"},
	"deploy":                      {},
	"deploy/containers":           {},
	"workloads/digits":            {},
	"workloads/digits/cmd/digits": {"workloads/digits"},
	"services/certs":              {"bus", "schemas"},
	"services":                    {},
	"services/courier": {
		"services", "services/certs", "schemas", "bus", "bus/server", "spool", "runner", "runner/output",
		"collector", "importer", "store", "store/engine", "store/engine/host",
		"trainer", "advisor", "gateway", "regress", "regress/table", "report", "replay",
		"simulate", "simulate/drift", "workloads/digits",
	},
}

// forTests are rooms that only tests and test rooms import.
var forTests = []string{
	"bus/bustest", "store/storetest", "bus/server", "store/engine", "store/engine/host",
}

// modules of others have one room each.
var modules = map[string][]string{
	"github.com/nats-io/nats.go":          {"bus"},
	"github.com/nats-io/nats-server/v2":   {"bus/server"},
	"github.com/ClickHouse/clickhouse-go": {"store", "store/storetest"},
	"github.com/ebitengine/purego":        {"store/engine/host"},
	"github.com/prometheus/node_exporter": {"collector"},
	"github.com/alecthomas/kingpin":       {"collector"},
	"github.com/creack/pty":               {"runner", "store/engine/host"},
	"github.com/dmitryikh/leaves":         {"regress"},
	"gonum.org/v1/gonum":                  {"regress", "regress/evidence", "workloads/digits"},
	"golang.org/x/sync":                   {"services", "services/courier", "simulate/drift"},
	"github.com/alecthomas/kong":          {"services/courier"},
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
	},
	"github.com/prometheus/client_model": {"collector", "services"},
	"github.com/prometheus/common":       {"collector", "services"},
	"github.com/prometheus/procfs":       {"collector"},
	"golang.org/x/sys": {
		"store/engine",
		"store/engine/host",
		"spool",
		"runner",
		"runner/usage",
		"collector",
		"services",
	},
	"golang.org/x/term": {"runner", "services"},
}

// testModules may be imported by any test.
var testModules = []string{
	"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "go.yaml.in/yaml/v3",
	"github.com/nats-io/nats.go",
	"github.com/prometheus/client_golang", "golang.org/x/sys", "golang.org/x/term",
	"github.com/creack/pty", "golang.org/x/sync",
}

const module = "courier"

// source is a parsed file of the house.
type source struct {
	path, room string
	test       bool
	file       *ast.File
}

func sources(t *testing.T) []source {
	var all []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "." && (strings.HasPrefix(name, ".") ||
			name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{
			path,
			filepath.ToSlash(filepath.Dir(path)),
			strings.HasSuffix(path, "_test.go"),
			f,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImports_AreThoseOfThePicture(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		allowed, known := house[s.room]
		if !known {
			t.Errorf("%s: the room %s is not in the picture", s.path, s.room)
			continue
		}
		seen[s.room] = true
		for _, spec := range s.file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if why := forbidden(s, path, allowed); why != "" {
				t.Errorf("%s imports %s: %s", s.path, path, why)
			}
		}
	}
	for room := range house {
		if !seen[room] {
			t.Errorf("the room %s is in the picture, but not in the house", room)
		}
	}
}

// forbidden says why a file may not import a path, or nothing.
func forbidden(s source, path string, allowed []string) string {
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		switch {
		case slices.Contains(allowed, rest), rest == s.room:
			return ""
		case s.test && slices.Contains(forTests, rest):
			return ""
		case s.test && s.room == ".":
			return ""
		}
		return "the arrow is not in the picture"
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for m, rooms := range modules {
		if path == m || strings.HasPrefix(path, m+"/") {
			if slices.Contains(rooms, s.room) || s.test && slices.Contains(testModules, m) {
				return ""
			}
			return "this module belongs to " + strings.Join(rooms, ", ")
		}
	}
	for _, m := range testModules {
		if s.test && (path == m || strings.HasPrefix(path, m+"/")) {
			return ""
		}
	}
	return "this module has no room"
}

// Each room says what it is: a test fails a package without a package comment.
func TestImports_EveryRoomHasAPackageComment(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test && s.file.Doc != nil && len(s.file.Doc.Text()) > 40 {
			documented[s.room] = true
		}
	}
	for room := range house {
		if !documented[room] {
			t.Errorf("the room %s has no package comment", room)
		}
	}
}

// No file outside schemas spells a subject, and nobody sleeps.
func TestImports_SubjectsAndSleeps(t *testing.T) {
	for _, s := range sources(t) {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "time."+"Sleep(") {
			t.Errorf("%s sleeps: await the event instead", s.path)
		}
		if s.test || s.room == "schemas" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				for _, prefix := range []string{`"job.`, `"node.`, `"regressor.`, `"dead.`} {
					if strings.HasPrefix(lit.Value, prefix) && !slices.Contains([]string{
						`.txt"`, `.json"`, `.html"`,
					}, filepath.Ext(lit.Value)) {
						t.Errorf("%s spells the subject %s: take it from schemas", s.path,
							lit.Value)
					}
				}
			}
			return true
		})
	}
}
