package table

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, in string
		header   []string
		rows     [][]string
		says     string
	}{
		{
			"csv",
			"a,b\n1,x\n2,\"y,z\"\n",
			[]string{"a", "b"},
			[][]string{{"1", "x"}, {"2", "y,z"}},
			"",
		},
		{
			"a mark before the header, and Windows lines",
			"\ufeffa,b\r\n1,x\r\n",
			[]string{"a", "b"},
			[][]string{{"1", "x"}},
			"",
		},
		{
			"json lines", `{"a":1,"b":"x"}` + "\n" + `{"b":null,"c":true,"a":2.50}`,
			[]string{"a", "b", "c"},
			[][]string{{"1", "x", ""}, {"2.50", "", "true"}}, "",
		},
		{"only a header", "a,b\n", []string{"a", "b"}, nil, ""},
		{"empty", " \n", nil, nil, "empty"},
		{"a name twice", "a,a\n", nil, nil, `column 2 is named "a"`},
		{"no name", "a,\n", nil, nil, `column 2 is named ""`},
		{"semicolons, and an index", ";a\n0;x,y\n", []string{"index", "a"}, [][]string{{"0", "x,y"}}, ""},
		{"tabs", "a b\tc\n1\t2\n", []string{"a b", "c"}, [][]string{{"1", "2"}}, ""},
		{"a short row", "a,b\n1\n", nil, nil, "wrong number of fields"},
		{"a quote left open", "a,b\n\"1,2\n", nil, nil, "\""},
		{"nested", `{"a":{"b":{"c":1}},"d":[1]}`, []string{"a.b.c", "d"}, [][]string{{"1", ""}}, ""},
		{"json cut off", `{"a":1`, nil, nil, "example 1"},
		{"no object", "{\"a\":1}\n[1]", nil, nil, "example 2"},
		{"null", "{\"a\":1}\nnull", nil, nil, "example 2: it is null, want an object"},
		{"no fields", "{}\n{}", nil, nil, "no fields"},
		{"a field of its own for every example", sparse(3000), nil, nil, "different fields"},
	} {
		got, err := Read(strings.NewReader(c.in))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got.Header, c.header) ||
			!reflect.DeepEqual(got.Rows, c.rows) {
			t.Errorf("%s: %+v, %v, want %q and %q", c.name, got, err, c.header, c.rows)
		}
	}
}

func sparse(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"f%d\":1}\n", i)
	}
	return b.String()
}

// For any input, rows are as wide as the header, and names are unique.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,x\n2,y\n", "\ufeffa\n1\n", `{"a":1,"b":"x"}` + "\n" + `{"c":null}`,
		"a,b\n\"1\n2\",3\n", "{\"\":1}", "a;b\n1;2\n",
		"batch,t\n1e308,-0\nNaN,Inf\n0x1p-2,1_0\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		table, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, name := range table.Header {
			if seen[name] || name == "" {
				t.Fatalf("column name %q is empty or a duplicate", name)
			}
			seen[name] = true
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Header) {
				t.Fatalf("row has %d cells, want %d", len(row), len(table.Header))
			}
		}
	})
}
