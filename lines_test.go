package courier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxGoColumns is the longest line of Go code, with tabs of four columns.
const maxGoColumns = 120

// Lines of Go code have at most maxGoColumns columns. Lines of raw strings are exempt.
func TestLines_AreShort(t *testing.T) {
	for _, path := range filesWith(t, ".go") {
		lines, err := longLines(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range lines {
			t.Errorf("%s:%d: the line has more than %d columns", path, n, maxGoColumns)
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
