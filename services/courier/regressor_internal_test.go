package main

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestReadExamples(t *testing.T) {
	for _, c := range []struct {
		name, in string
		header   []string
		rows     [][]string
		says     string
	}{
		{"csv", "a,b\n1,x\n2,\"y,z\"\n", []string{"a", "b"}, [][]string{{"1", "x"}, {"2", "y,z"}}, ""},
		{"a mark before the header, and Windows lines", "\ufeffa,b\r\n1,x\r\n", []string{"a", "b"}, [][]string{{"1", "x"}}, ""},
		{"json lines", `{"a":1,"b":"x"}` + "\n" + `{"b":null,"c":true,"a":2.50}`, []string{"a", "b", "c"},
			[][]string{{"1", "x", ""}, {"2.50", "", "true"}}, ""},
		{"only a header", "a,b\n", []string{"a", "b"}, nil, ""},
		{"empty", " \n", nil, nil, "empty"},
		{"a name twice", "a,a\n", nil, nil, `column 2 is named "a"`},
		{"no name", "a,\n", nil, nil, `column 2 is named ""`},
		{"a short row", "a,b\n1\n", nil, nil, "wrong number of fields"},
		{"a quote left open", "a,b\n\"1,2\n", nil, nil, "\""},
		{"nested", `{"a":[1]}`, nil, nil, "example 1: field a"},
		{"json cut off", `{"a":1`, nil, nil, "example 1"},
		{"no object", "{\"a\":1}\n[1]", nil, nil, "want an object"},
		{"no fields", "{}\n{}", nil, nil, "no fields"},
		{"a field of its own for every example", sparse(3000), nil, nil, "different fields"},
	} {
		got, err := readExamples(strings.NewReader(c.in))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got.header, c.header) || !reflect.DeepEqual(got.rows, c.rows) {
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

// Whatever comes in, rows are as wide as the header, names are there once, and a
// dataset can be made or refused.
func FuzzReadExamples(f *testing.F) {
	for _, seed := range []string{"a,b\n1,x\n2,y\n", "\ufeffa\n1\n", `{"a":1,"b":"x"}` + "\n" + `{"c":null}`, "a,b\n\"1\n2\",3\n", "{\"\":1}", "a;b\n1;2\n",
		"batch,t\n1e308,-0\nNaN,Inf\n0x1p-2,1_0\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		table, err := readExamples(bytes.NewReader(in))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, name := range table.header {
			if seen[name] || name == "" {
				t.Fatalf("column %q", name)
			}
			seen[name] = true
		}
		for _, row := range table.rows {
			if len(row) != len(table.header) {
				t.Fatalf("row of %d cells for %d columns", len(row), len(table.header))
			}
		}
		last := table.header[len(table.header)-1]
		c := regressorFit{Target: table.header[0], Features: []string{last}, Group: []string{last}, Transform: "auto"}
		fitted := &fittedRegressor{}
		if err := c.dataset(table, fitted); err != nil {
			return
		}
		for _, x := range append(fitted.data.Columns[0], fitted.data.Target...) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("a clean example has %g", x)
			}
		}
	})
}

func TestFeature_TellsNumbersFromCategories(t *testing.T) {
	table := &exampleTable{header: []string{"n", "c", "mixed", "none"}}
	for i := range 40 {
		mixed := fmt.Sprint(i)
		if i == 7 {
			mixed = "7o"
		}
		table.rows = append(table.rows, []string{fmt.Sprint(i), string(rune('a' + i%3)), mixed, " "})
	}
	for _, c := range []struct {
		name     string
		category bool
		levels   int
		says     string
	}{{"n", false, 0, ""}, {"n", true, 40, ""}, {"c", false, 3, ""}, {"mixed", false, 0, ""}, {"none", false, 0, "is empty"}, {"x", false, 0, "no column"}} {
		f, err := table.feature(c.name, c.category)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
		} else if err != nil || len(f.Levels) != c.levels {
			t.Errorf("%s: %d levels, %v, want %d", c.name, len(f.Levels), err, c.levels)
		}
	}
	group, err := (&exampleTable{header: []string{"a", "b"}, rows: [][]string{{"64", "x"}, {"64.0", "x"}, {"64", "y"}}}).groups([]string{"a", "b"})
	if err != nil || !reflect.DeepEqual(group, []int{0, 0, 1}) {
		t.Errorf("groups = %v, %v", group, err)
	}
}

func TestTicks_AreFewAndInside(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
	}{{0, 1, false}, {-0.17, 0.33, false}, {60, 1100, true}, {0.9, 1.4, true}, {1e-6, 1e6, true}, {5, 6, false}} {
		all := ticks(c.low, c.high, c.log)
		if len(all) < 2 || len(all) > 12 {
			t.Errorf("ticks(%+v) = %g", c, all)
		}
		for _, v := range all {
			if v < c.low-1e-9 || v > c.high+1e-9 {
				t.Errorf("ticks(%+v) has %g", c, v)
			}
		}
	}
}
