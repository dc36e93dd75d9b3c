package output

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// read returns the epochs of a text as "number loss accuracy", with a line each second.
func read(requested int, text string, succeeded bool) []string {
	p, err := New("")
	if err != nil {
		panic(err)
	}
	p.SetEpochs(uint32(requested))
	at := noon
	var all []string
	add := func(events []EpochReport) {
		for _, e := range events {
			s := fmt.Sprint(e.Epoch)
			for _, v := range []*float64{e.Loss, e.Accuracy} {
				if v == nil {
					s += " -"
				} else {
					s += fmt.Sprintf(" %.4g", *v)
				}
			}
			all = append(all, s)
		}
	}
	for _, line := range strings.SplitAfter(text, "\n") {
		at = at.Add(time.Second)
		add(p.Write(0, []byte(line), at))
	}
	add(p.Close(at, succeeded))
	return all
}

// repeat writes a template for epochs first to last: {e} is the number, {v} and {w} fall, {a} rises, {s} are
// rising seconds.
func repeat(first, last int, template string) string {
	var b strings.Builder
	for e := first; e <= last; e++ {
		k := float64(e - first + 1)
		b.WriteString(strings.NewReplacer("{e}", fmt.Sprint(e), "{n}", fmt.Sprint(e+1), "{v}", fmt.Sprintf("%.4f", 1/k),
			"{w}", fmt.Sprintf("%.4f", 1.5/k), "{a}", fmt.Sprintf("%.4f", 0.5+0.1*k),
			"{s}", fmt.Sprintf("%.1f", 10*k)).Replace(template))
	}
	return b.String()
}

// testdata/outputs.txtar has outputs, and their epochs behind the name.
func TestParser_ReadsManyForms(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/outputs.txtar")
	if err != nil || len(archive.Files) == 0 {
		t.Fatal("no outputs:", err)
	}
	for _, file := range archive.Files {
		name, want, _ := strings.Cut(file.Name, ":")
		want = strings.TrimSpace(want)
		requested := 0
		if _, n, isTold := strings.Cut(name, " (of "); isTold {
			_, _ = fmt.Sscan(n, &requested)
		} else {
			_, _ = fmt.Sscan(want[strings.LastIndexByte(want, ',')+1:], &requested)
		}
		if got := strings.Join(read(requested, string(file.Data), true), ", "); got != want {
			t.Errorf("%s: got %s, want %s\n%s", name, got, want, file.Data)
		}
	}
}

// Short rounds are reported in blocks. The first one is reported alone, so that the start-up shows.
func TestRounds_AreReportedInBlocks(t *testing.T) {
	b, r := rounds{least: minBlock}, &recogniser{class: countsRounds}
	var got []string
	for n := range uint32(10) {
		e := EpochReport{Epoch: n + 1, Epochs: 1, At: noon.Add(time.Duration(n) * minBlock / 4)}
		numbers := "-"
		for _, e := range b.add([]EpochReport{e}, r) {
			numbers = fmt.Sprint(e.Epoch)
		}
		got = append(got, numbers)
	}
	if text := strings.Join(got, " "); text != "1 - - - 5 - - - 9 -" {
		t.Errorf("reports %q", text)
	}
	if last := b.release(); len(last) != 1 || last[0].Epoch != 10 || last[0].Epochs != 1 {
		t.Errorf("%+v at the end, want the last one", last)
	}
}
