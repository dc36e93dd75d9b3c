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
	"unicode/utf8"
)

// maxGoColumns is the longest line of Go code, with tabs of four columns.
const maxGoColumns = 120

// packagesWithLongLines still have lines above maxGoColumns. The list only shrinks.
var packagesWithLongLines = []string{}

// Lines of Go code have at most maxGoColumns columns. Lines of raw strings are exempt.
func TestLines_AreShort(t *testing.T) {
	long := map[string]int{} // by package
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != "." && strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (hidden || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		lines, err := longLines(path)
		pkg := filepath.ToSlash(filepath.Dir(path))
		long[pkg] += len(lines)
		if !slices.Contains(packagesWithLongLines, pkg) {
			for _, n := range lines {
				t.Errorf("%s:%d: the line has more than %d columns", path, n, maxGoColumns)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packagesWithLongLines {
		if long[pkg] == 0 {
			t.Logf("%s has no long lines: remove it from packagesWithLongLines", pkg)
		}
	}
}

// longLines returns the numbers of the lines of a file above maxGoColumns, without raw strings.
func longLines(path string) ([]int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}

	raw := map[int]bool{} // lines of raw strings
	ast.Inspect(f, func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		if ok && l.Kind == token.STRING && strings.HasPrefix(l.Value, "`") {
			for line := files.Position(l.Pos()).Line; line <= files.Position(l.End()).Line; line++ {
				raw[line] = true
			}
		}
		return true
	})

	var long []int
	for i, line := range strings.Split(string(text), "\n") {
		isDirective := strings.HasPrefix(line, "//go:")
		columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
		if columns > maxGoColumns && !raw[i+1] && !isDirective {
			long = append(long, i+1)
		}
	}
	return long, nil
}
