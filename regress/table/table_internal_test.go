package table

import (
	"bytes"
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
		{"only a header", "a,b\n", []string{"a", "b"}, nil, ""},
		{"empty", " \n", nil, nil, "empty"},
		{"a name twice", "a,a\n", nil, nil, `column 2 is named "a"`},
		{
			"groups", ",T,,V,\nr,a,b,a,b\n1,2,3,4,5\n",
			[]string{"r", "T a", "T b", "V a", "V b"}, [][]string{{"1", "2", "3", "4", "5"}}, "",
		},
		{"no name", "a,\n", nil, nil, `column 2 is named ""`},
		{"semicolons, and an index", ";a\n0;x,y\n", []string{"index", "a"}, [][]string{{"0", "x,y"}}, ""},
		{"tabs", "a b\tc\n1\t2\n", []string{"a b", "c"}, [][]string{{"1", "2"}}, ""},
		{"a short row", "a,b\n1\n", nil, nil, "wrong number of fields"},
		{"a quote left open", "a,b\n\"1,2\n", nil, nil, "\""},
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

// For any input, rows are as wide as the header, and names are unique.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,x\n2,y\n", "\ufeffa\n1\n",
		"a,b\n\"1\n2\",3\n", "a;b\n1;2\n",
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
