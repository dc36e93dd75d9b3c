package courier_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md")

const (
	maxPageLines   = 300
	maxReadmeLines = 120
	maxColumns     = 100
)

// generatedPages are written by tests and may have wider lines than other pages.
var generatedPages = []string{
	"docs/reference/metrics.md",
	"docs/reference/views.md",
}

// filesWith returns the files of the repository whose name has an ending.
func filesWith(t *testing.T, ending string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != "." && strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (hidden || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ending) {
			found = append(found, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func pages(t *testing.T) []string { return filesWith(t, ".md") }

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```\n")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	mdLink     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	mdHeading  = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	notAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the fragments that a page's headings can be linked by.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range mdHeading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		heading := notAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return found
}

// TestDocs_LinksLeadSomewhere checks every relative link and its fragment.
func TestDocs_LinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text := inlineCode.ReplaceAllString(codeBlock.ReplaceAllString(readPage(t, page), ""), "")
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: link %q: %v", page, m[1], err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			links++
			target := page
			if u.Path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), u.Path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %q leads nowhere", page, m[1])
				continue
			}
			if u.Fragment != "" && !anchors(readPage(t, target))[u.Fragment] {
				t.Errorf("%s: link %q: %s has no such heading", page, m[1], target)
			}
		}
	}
	if links < 20 {
		t.Errorf("found %d links, want 20 or more: is the pattern still right?", links)
	}
}

// TestDocs_ArePagesOfReadableSize limits pages and lines. Tables, links and code cannot be
// wrapped.
func TestDocs_ArePagesOfReadableSize(t *testing.T) {
	for _, page := range pages(t) {
		text := readPage(t, page)
		limit := maxPageLines
		if page == "README.md" {
			limit = maxReadmeLines
		}
		if n := strings.Count(text, "\n"); n > limit {
			t.Errorf("%s has %d lines, want at most %d", page, n, limit)
		}
		if slices.Contains(generatedPages, page) {
			continue
		}
		for _, line := range strings.Split(codeBlock.ReplaceAllString(text, ""), "\n") {
			fixed := strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ")
			if len([]rune(line)) > maxColumns && !fixed && !strings.Contains(line, "](") {
				t.Errorf("%s: line of %d columns, want at most %d: %s",
					page, len([]rune(line)), maxColumns, line)
			}
		}
	}
}

// TestDocs_IndexNamesEveryPage checks that a reader can find every page from docs/README.md.
func TestDocs_IndexNamesEveryPage(t *testing.T) {
	index := readPage(t, "docs/README.md")
	for _, page := range pages(t) {
		name, inDocs := strings.CutPrefix(page, "docs/")
		if !inDocs || name == "README.md" || strings.HasPrefix(name, "decisions/") {
			continue
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not link %s", name)
		}
	}
}

var (
	testName    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*)(…?)`")
	testCommand = regexp.MustCompile("go test \\./(\\S+) -run (\\w+)`")
	testFunc    = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// TestDocs_NameExistingTests checks that every test that a page names exists, alone or in a command
// that runs it. A name that ends in … is a prefix, one in a command a part.
func TestDocs_NameExistingTests(t *testing.T) {
	var all []string // directories and tests
	for _, path := range filesWith(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(readPage(t, path), -1) {
			all = append(all, filepath.ToSlash(filepath.Dir(path))+" "+m[1])
		}
	}
	commands := 0
	for _, page := range pages(t) {
		if page == "CHANGELOG.md" || page == "BENCHMARKS.md" {
			continue
		}
		for _, m := range testName.FindAllStringSubmatch(readPage(t, page), -1) {
			isNamed := func(test string) bool {
				return strings.HasSuffix(test, " "+m[1]) || m[2] != "" && strings.Contains(test, " "+m[1])
			}
			if !slices.ContainsFunc(all, isNamed) {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
		}
		for _, m := range testCommand.FindAllStringSubmatch(readPage(t, page), -1) {
			commands++
			isRun := func(test string) bool {
				return strings.HasPrefix(test, m[1]+" ") && strings.Contains(test, m[2])
			}
			if m[2] != "xxx" && !slices.ContainsFunc(all, isRun) {
				t.Errorf("%s: %s runs no test", page, m[0])
			}
		}
	}
	if commands < 20 {
		t.Errorf("found %d commands, want 20 or more: is the pattern still right?", commands)
	}
}

// metric is a Prometheus metric as its package declares it.
type metric struct{ name, kind, help string }

// TestDocs_MetricsReferenceIsComplete compares docs/reference/metrics.md with the declarations
// in the source.
func TestDocs_MetricsReferenceIsComplete(t *testing.T) {
	const path = "docs/reference/metrics.md"
	byPackage := map[string][]metric{}
	for _, s := range goFiles(t) {
		if s.test {
			continue
		}
		if found := metricsOf(s.file); len(found) > 0 {
			byPackage[s.pkg] = append(byPackage[s.pkg], found...)
		}
	}
	got := metricsPage(byPackage)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readPage(t, path), got); diff != "" {
		t.Errorf("%s (-page +source; go test . -update writes it):\n%s", path, diff)
	}
	if n := strings.Count(got, "| `courier_"); n < 30 {
		t.Errorf("found %d metrics, want 30 or more: are they declared in another way?", n)
	}
}

func metricsPage(byPackage map[string][]metric) string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nEvery service serves its metrics at `/metrics`. " +
		"This page is generated from the source by\n`go test . -update`.\n")
	packages := make([]string, 0, len(byPackage))
	for pkg := range byPackage {
		packages = append(packages, pkg)
	}
	slices.Sort(packages)
	for _, pkg := range packages {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | meaning |\n| --- | --- | --- |\n", pkg)
		all := byPackage[pkg]
		slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
		for _, m := range all {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, m.kind, m.help)
		}
	}
	return b.String()
}

// metricsOf finds declarations with a literal name: options of client_golang, and calls of
// helpers such as counter(name, help, labels...).
func metricsOf(file *ast.File) []metric {
	var found []metric
	add := func(kind string, name, help ast.Expr) {
		n, h := literal(name), literal(help)
		if strings.HasPrefix(n, "courier_") && h != "" {
			found = append(found, metric{n, kind, h})
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.CompositeLit:
			kind, isOptions := strings.CutSuffix(nameOf(x.Type), "Opts")
			if isOptions {
				add(strings.ToLower(kind), field(x, "Name"), field(x, "Help"))
			}
		case *ast.CallExpr:
			if name := nameOf(x.Fun); name == "NewDesc" && len(x.Args) > 1 {
				add("gauge", x.Args[0], x.Args[1])
			} else if len(x.Args) >= 2 {
				add(strings.ToLower(name), x.Args[0], x.Args[1])
			}
		}
		return true
	})
	return found
}

func nameOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

func field(c *ast.CompositeLit, key string) ast.Expr {
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && nameOf(kv.Key) == key {
			return kv.Value
		}
	}
	return nil
}

// literal returns the value of a string literal or of a sum of them, else "".
func literal(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(x.Value); x.Kind == token.STRING && err == nil {
			return s
		}
	case *ast.BinaryExpr:
		return literal(x.X) + literal(x.Y)
	}
	return ""
}
