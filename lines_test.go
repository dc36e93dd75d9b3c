package courier_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxGoColumns is the longest line of Go code, with tabs of four columns.
const maxGoColumns = 120

// Lines of Go code have at most maxGoColumns columns. Lines of raw strings are exempt.
func TestLines_AreShort(t *testing.T) {
	for _, path := range filesWith(t, ".go") {
		text, files := readPage(t, path), token.NewFileSet()
		f, err := parser.ParseFile(files, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
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
		for i, line := range strings.Split(text, "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > maxGoColumns && !raw[i+1] && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d: the line has more than %d columns", path, i+1, maxGoColumns)
			}
		}
	}
}
