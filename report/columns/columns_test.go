package columns_test

import (
	"strings"
	"testing"
	"time"

	"courier/report/columns"
)

const jobs = "3 jobs\n" +
	"job\tstate\tSLO\tends\taccuracy\n" +
	"nightly-1\trunning\tat risk: 0.412\t7m 38s\t0.9100\t\n" +
	"a-job-with-a-long-name\tfailed\tmissed\t-\t-\t\n" +
	"x\tqueued\n" +
	"more: courier jobs --after x\n"

func TestFormat_FitsATable(t *testing.T) {
	const advice = "decision\tmeets_slo\nadvice\trun it with batch size 64 on 2 CPUs\n\n" +
		"batch\ttime\treason\n8\t60 s\tslower than the SLO\n64\t8.5 s\tchosen: the most accurate alternative\n"
	for _, c := range []struct {
		name, text, want string
		layout           columns.Layout
	}{
		{
			"without a terminal", jobs, `3 jobs
job                     state    SLO               ends  accuracy
nightly-1               running  at risk: 0.412  7m 38s    0.9100
a-job-with-a-long-name  failed   missed               -         -
x                       queued
more: courier jobs --after x
`, columns.Layout{},
		},
		{
			"narrow", jobs, `3 jobs
job             state    SLO               ends
nightly-1       running  at risk: 0.412  7m 38s
a-job-with-a-…  failed   missed               -
x               queued
(too narrow for: accuracy)
more: courier jobs --after x
`, columns.Layout{Width: 48},
		},
		{
			"texts at the end", advice, `decision  meets_slo
advice    run it with batch size 64 on
          2 CPUs

batch   time  reason
    8   60 s  slower than the SLO
   64  8.5 s  chosen: the most
              accurate alternative
`, columns.Layout{Width: 38},
		},
		{
			"an instant is not cut", "job\tmodel\tdeadline\n" +
				"x\ta-model-with-a-long-name\t11-29 14:12:45Z\n", `job  model                   deadline
x    a-model-with-a…  11-29 14:12:45Z
`, columns.Layout{Width: 37},
		},
		{
			"colours", "a\tb\tc\nx\tmissed\t1\nok\tmodel\t2\n",
			"\x1b[1ma\x1b[0m   \x1b[1mb\x1b[0m       \x1b[1mc\x1b[0m\n" +
				"x   \x1b[31mmissed\x1b[0m  1\n\x1b[32mok\x1b[0m  model   2\n", columns.Layout{Color: true},
		},
	} {
		got := c.layout.Format(c.text)
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// No line of a table is wider than the terminal, whatever its cells are.
func FuzzFormat(f *testing.F) {
	f.Add(jobs, 30)
	f.Add("\t\n\t\t\nä\tb", 1)
	f.Fuzz(func(t *testing.T, text string, width int) {
		columns.Layout{Width: width, Color: true}.Format(text)
		for line := range strings.Lines(columns.Layout{}.Format(text)) {
			if strings.Contains(line, "\t") {
				t.Errorf("a tab remains in %q", line)
			}
		}
	})
}

type line struct {
	Name  string     `json:"name"`
	Share *float64   `json:"share"`
	At    *time.Time `json:"at,omitempty"`
	Load  *struct {
		Jobs int `json:"jobs"`
	} `json:"load,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
}

type common struct {
	Models []line `json:"models"`
	Total  int    `json:"total"`
}

func TestCSV_WritesLists(t *testing.T) {
	share, at := 0.5, time.Unix(0, 0).UTC()
	full := line{Name: `a "b", c`, Share: &share, At: &at, Nodes: []string{"n1", "n2"}}
	full.Load = &struct {
		Jobs int `json:"jobs"`
	}{3}
	for _, c := range []struct {
		result any
		want   string
	}{
		{full, "name,share,at,load.jobs,nodes\n" +
			`"a ""b"", c",0.5,1970-01-01T00:00:00Z,3,"[""n1"",""n2""]"` + "\n"},
		{
			&struct {
				common
				Users []line `json:"users"`
			}{common{Models: []line{{Name: "<m>"}}}, []line{{Name: "u"}}},
			"list,name,share,at,load.jobs,nodes\nmodels,<m>,,,,\nusers,u,,,,\n",
		},
		{common{Total: 1}, "name,share,at,load.jobs,nodes\n"},
	} {
		var out strings.Builder
		if err := columns.CSV(&out, c.result); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("got\n%s\nwant\n%s", &out, c.want)
		}
	}
}
