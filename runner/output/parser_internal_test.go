package output

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// format returns reports as lines of epoch, seconds, loss and accuracy.
func format(reports []EpochReport) []string {
	var all []string
	for _, r := range reports {
		text := fmt.Sprintf("%d %.6g", r.Epoch, r.Seconds)
		for _, v := range []*float64{r.Loss, r.Accuracy} {
			if v == nil {
				text += " -"
			} else {
				text += fmt.Sprintf(" %g", *v)
			}
		}
		all = append(all, text)
	}
	return all
}

// parse parses a complete output, and returns its reports as format does.
func parse(t *testing.T, expression, text string) []string {
	t.Helper()
	p, err := New(expression)
	if err != nil {
		t.Fatal(err)
	}
	reports := p.Write(0, []byte(text), noon)
	return format(append(reports, p.Close(noon, true)...))
}

// parseLines parses an output whose lines arrive a second apart, for a number of requested epochs,
// and returns its reports as format does.
func parseLines(t testing.TB, requested uint32, text string, succeeded bool) []string {
	t.Helper()
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	p.SetEpochs(requested)
	var reports []EpochReport
	at := noon
	for line := range strings.SplitAfterSeq(text, "\n") {
		at = at.Add(time.Second)
		reports = append(reports, p.Write(0, []byte(line), at)...)
	}
	return format(append(reports, p.Close(at, succeeded)...))
}

func TestLog_ReadsJSONLines(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{
			"all fields",
			`{"epoch":3,"seconds":2.5,"loss":0.25,"accuracy":0.97}`,
			[]string{"3 2.5 0.25 0.97"},
		},
		{"the epoch alone", `{"epoch":3}`, []string{"3 0 - -"}},
		{
			"other names and capitals",
			`  {"Epoch": 3.0, "Duration": 2, "train_loss": 1, "acc": 0.5}  `,
			[]string{"3 2 1 0.5"},
		},
		{
			"accuracy on unseen data is preferred",
			`{"epoch":1,"accuracy":0.99,"val_accuracy":0.9}`,
			[]string{"1 0 - 0.9"},
		},
		{
			"NaN of Python",
			`{"epoch": 2, "loss": NaN, "accuracy": 0.1, "grad": [-Infinity, Infinity]}`,
			[]string{"2 0 - 0.1"},
		},
		{"a percentage", `{"epoch":1,"accuracy":97.5}`, []string{"1 0 - 0.975"}},
		{"an invalid accuracy", `{"epoch":1,"accuracy":-0.1}`, []string{"1 0 - -"}},
		{"a negative duration", `{"epoch":1,"seconds":-3}`, []string{"1 0 - -"}},
		{"a duration out of range", `{"epoch":1,"seconds":1e300}`, []string{"1 0 - -"}},
		{"numbers as text", `{"epoch":1,"loss":"0.5","seconds":null}`, []string{"1 0 0.5 -"}},
		{"a fraction of an epoch", `{"epoch":1.5,"loss":1}`, nil},
		{"a negative epoch", `{"epoch":-1}`, nil},
		{"an epoch out of range", `{"epoch":1e30}`, nil},
		{"an epoch as text", `{"epoch":"1"}`, []string{"1 0 - -"}},
		{"without an epoch", `{"step":1}`, nil},
		{"an incomplete line", `{"epoch":1,"sec`, nil},
		{"not at the start of the line", `INFO {"epoch":1}`, []string{"1 0 - -"}},
		{"coloured", "\x1b[32m{\"epoch\":1}\x1b[0m", []string{"1 0 - -"}},
		{"after a progress bar", " 45%|####\r{\"epoch\":1}\r\n", []string{"1 0 - -"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewChannel()
			reports := append(g.Write([]byte(test.text), noon), g.Close(noon)...)
			if diff := cmp.Diff(test.want, format(reports)); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParser_ReadsTheUsersPattern(t *testing.T) {
	for _, test := range []struct{ name, pattern, text, want string }{
		{"the example", PatternExample, "epoch 4: acc=0.875.", "4 0 - 0.875"},
		{
			"every group",
			`ep (?P<epoch>\d+) (?P<seconds>\S+)s loss (?P<loss>\S+) top (?P<accuracy>\S+)`,
			"ep 2 1.5s loss -3e-2 top .5",
			"2 1.5 -0.03 0.5",
		},
		{"a percentage", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5%", "3 0 - 0.975"},
		{"a small percentage", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 0.5 %", "3 0 - 0.005"},
		{
			"a % elsewhere in the line",
			`(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`,
			"3 acc 97.5 (in %)",
			"3 0 - 0.975",
		},
		{
			"a ratio in a line with a %",
			`(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`,
			"3 acc 0.975 | 100%",
			"3 0 - 0.975",
		},
		{"above 1 without a %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5", "3 0 - 0.975"},
		{"above 100 %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 200%", "3 0 - -"},
		{
			"not a number",
			`(?P<epoch>\d+) acc (?P<accuracy>\S+) (?P<loss>\S+) (?P<seconds>\S+)`,
			"3 acc nan inf x",
			"3 0 - -",
		},
		{"a group that did not match", `(?P<epoch>\d+)(?: acc (?P<accuracy>\S+))?`, "3", "3 0 - -"},
		{"no match", `epoch (?P<epoch>\d+)`, "step 3", ""},
		{"an epoch that is not a number", `epoch (?P<epoch>\w+)`, "epoch three", ""},
		{"an epoch out of range", `(?P<epoch>\d+)`, "99999999999999", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(parse(t, test.pattern, test.text+"\n"), ";"); got != test.want {
				t.Errorf("%q on %q = %q, want %q", test.pattern, test.text, got, test.want)
			}
		})
	}
}

func TestNew_RefusesPatterns(t *testing.T) {
	for _, test := range []struct{ pattern, want string }{
		{`(?P<epoch>`, "--epoch-pattern"},
		{`(\d+)`, "missing group (?P<epoch>"},
		{`(?P<epoch>\d+) (?P<acc>\d+)`, `unknown group "acc"`},
		{`(?P<epoch>\d+)` + strings.Repeat("x", 5000), "more than 4096"},
	} {
		if _, err := New(test.pattern); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New(%.20q) = %v, want an error that contains %q", test.pattern, err, test.want)
		}
	}
}

// The reports do not depend on the pieces, and only the beginning of a long line is kept.
func TestParser_AcceptsInputInPieces(t *testing.T) {
	text := strings.Repeat(
		"x",
		5*maxLineSize,
	) + "\n" + `{"epoch":1}` + "\r\n\r\n" + strings.Repeat("y", 3<<20) + "\n" + `{"epoch":2}`
	for _, size := range []int{1, 7, 4096, len(text)} {
		p, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		var got []EpochReport
		most := 0
		for part := range chunked([]byte(text), size) {
			got = append(got, p.Write(0, part, noon)...)
			most = max(most, cap(p.streams[0].line))
		}
		got = append(got, p.Close(noon, true)...)
		if diff := cmp.Diff([]string{"1 0 - -", "2 0 - -"}, format(got)); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
		}
		if most > 2*maxLineSize || p.count != 4 {
			t.Errorf(
				"in pieces of %d: %d bytes kept, %d lines, want at most %d and 4", size, most,
				p.count, 2*maxLineSize,
			)
		}
	}
}

func chunked(data []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(size, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

// A line of one stream may be interrupted by a line of the other.
func TestParser_SeparatesTheStreams(t *testing.T) {
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	got := p.Write(0, []byte(`{"epoch`), noon)
	got = append(got, p.Write(1, []byte("warning\n"), noon)...)
	got = append(got, p.Write(0, []byte("\":1}\n"), noon)...)
	if diff := cmp.Diff([]string{"1 0 - -"}, format(got)); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

// Counts are whole numbers within their limits; others count as not reported.
func TestParser_ReadsCounts(t *testing.T) {
	type counts struct {
		batchSize, cpus uint32
		samples         uint64
	}
	for _, test := range []struct {
		expression, text string
		want             counts
	}{
		{"", `{"epoch":3,"batch_size":128,"cpus":4}`, counts{128, 4, 0}},
		{"", `{"epoch":3,"Batch_Size":1.28e2}`, counts{128, 0, 0}},
		{"", `{"epoch":3}`, counts{}},
		{"", `{"epoch":3,"batch_size":0.5,"cpus":1.5}`, counts{}},
		{"", `{"epoch":3,"batch_size":-8,"cpus":0}`, counts{}},
		{"", `{"epoch":3,"batch_size":1e300,"cpus":1e300}`, counts{}},
		{"", `{"epoch":3,"batch_size":"many"}`, counts{}},
		{"", `{"epoch":3,"accuracy":0.9,"validation_samples":597}`, counts{0, 0, 597}},
		{"", `{"epoch":3,"accuracy":0.9,"validation_samples":-3}`, counts{}},
		{`ep (?P<epoch>\d+) of (?P<batch_size>\S+) on (?P<cpus>\S+)`, "ep 3 of 32 on 2", counts{32, 2, 0}},
		{`ep (?P<epoch>\d+) of (?P<batch_size>\S+) on (?P<cpus>\S+)`, "ep 3 of all on all", counts{}},
	} {
		p, err := New(test.expression)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Write(0, []byte(test.text+"\n"), noon)
		if len(got) != 1 || got[0].Epoch != 3 ||
			(counts{got[0].BatchSize, got[0].CPUs, got[0].ValidationSamples}) != test.want {
			t.Errorf("%s: reports %+v, want epoch 3 with %+v", test.text, got, test.want)
		}
	}
}

// The last lines are kept across a restart, without escape sequences, and the beginnings of long ones.
func TestParser_KeepsTheLastLines(t *testing.T) {
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 0)
	for n := range 30 {
		p.Write(0, fmt.Appendf(nil, "line %d\n", n), at)
	}
	p = p.Restart()
	long := strings.Repeat("x", 2*maxExcerptBytes)
	p.Write(1, []byte("\x1b[31mred\x1b[0m\n"+long+"\nwithout an end"), at)
	p.Close(at, false)
	got := p.Tail()
	want := []string{"red", excerpt([]byte(long)), "without an end"}
	if len(got) != tailLines || got[0] != "line 13" {
		t.Errorf("%d lines from %q on, want %d from line 13 on", len(got), got[0], tailLines)
	}
	if diff := cmp.Diff(want, got[len(got)-len(want):]); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
}
