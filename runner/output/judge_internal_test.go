package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// truth is what a log of the shared folders says, as their README describes.
type truth struct {
	Requested int                `json:"requested"`
	Number    string             `json:"number"` // any: epochs are told by their order
	Tolerance map[string]float64 `json:"tolerance"`
	Unchecked []string           `json:"unchecked"`
	Loss      *bool              `json:"loss_required"`
	Metric    *bool              `json:"metric_required"`
	Below     *float64           `json:"seconds_below"`
	Epochs    []trueEpoch        `json:"epochs"`
}

type trueEpoch struct {
	Epoch      int       `json:"epoch"`
	Optional   bool      `json:"optional"`
	Loss       *float64  `json:"loss"`
	LossOK     []float64 `json:"loss_ok"`
	MetricName string    `json:"metric_name"`
	Metric     *float64  `json:"metric"`
	AcceptAcc  []float64 `json:"accept_accuracy"`
	Seconds    *float64  `json:"seconds"`
}

// The logs of the shared folders are read right, whether or not the arrival times agree with the
// durations that they print.
func TestParser_ReadsSharedLogsRight(t *testing.T) {
	const shared = "../../../shared/"
	for _, c := range []struct{ logs, truths string }{
		{shared + "data/field-cases", shared + "data/field-cases"},
		{shared + "data/framework-output", shared + "prototypes/recogniser/testdata/framework-output"},
	} {
		for _, isTold := range []bool{false, true} {
			right, all := judgeFolder(t, c.logs, c.truths, isTold)
			if all == 0 {
				t.Skip("there are no logs with a truth in " + c.logs)
			}
			t.Logf("%s, durations as told %t: %d of %d right", c.logs, isTold, right, all)
		}
	}
}

// judgeFolder replays the logs of a folder and compares the reports with the truth.
func judgeFolder(t *testing.T, logs, truths string, isTold bool) (right, all int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(truths, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		want, ok := readTruth(t, file)
		text, err := os.ReadFile(filepath.Join(logs, name+".txt"))
		if !ok || err != nil {
			continue // a table, a trace or a scenario
		}
		all++
		wrong := want.compare(replay(t, text, want, isTold))
		if len(wrong) == 0 {
			right++
			continue
		}
		t.Errorf("%s, durations as told %t: %s", name, isTold, strings.Join(wrong, "; "))
	}
	return right, all
}

func readTruth(t *testing.T, file string) (want truth, ok bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var outer struct{ Expect, Epochs json.RawMessage }
	if json.Unmarshal(data, &outer) != nil {
		return want, false
	}
	if outer.Expect != nil {
		data = outer.Expect
	}
	isLog := json.Unmarshal(data, &want) == nil && want.Requested > 0
	return want, isLog && (outer.Expect != nil || outer.Epochs != nil)
}

// replay gives a log to a parser, one drawing at a time and evenly spread. With isTold the log takes
// as long as its truth says.
func replay(t *testing.T, text []byte, want truth, isTold bool) []EpochReport {
	t.Helper()
	length := 0.0
	for _, e := range want.Epochs {
		if isTold && e.Seconds != nil {
			length += *e.Seconds
		}
	}
	var parts [][]byte
	for line := range bytes.SplitAfterSeq(text, []byte("\n")) {
		parts = append(parts, bytes.SplitAfter(line, []byte("\r"))...)
	}
	if length == 0 {
		epochs := max(4, len(want.Epochs))
		length = 0.15 * float64(max(epochs, min(2*epochs+8, bytes.Count(text, []byte("\n")))))
	}
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	p.SetEpochs(uint32(want.Requested))
	p.rounds.least = 0 // each round is judged
	var reports []EpochReport
	at := noon
	for i, part := range parts {
		at = noon.Add(time.Duration(length * float64(time.Second) * float64(i+1) / float64(len(parts))))
		reports = append(reports, p.Write(0, part, at)...)
	}
	return append(reports, p.Close(at.Add(50*time.Millisecond), true)...)
}

// compare returns what is wrong or absent.
func (w *truth) compare(reports []EpochReport) (wrong []string) {
	left := slices.Clone(w.Epochs)
	for _, r := range reports {
		var best []string
		found := -1
		for i, e := range left {
			if w.Number != "any" && e.Epoch != int(r.Epoch) {
				continue
			}
			bad := w.check(e, r)
			if found < 0 || len(bad) < len(best) {
				best, found = bad, i
			}
			if w.Number == "any" && (!e.Optional || len(bad) == 0) {
				break
			}
		}
		if found < 0 {
			wrong = append(wrong, fmt.Sprintf("epoch %d is none", r.Epoch))
			continue
		}
		wrong = append(wrong, best...)
		number := left[found].Epoch
		if w.Number == "any" {
			left = left[found+1:]
			continue
		}
		left = slices.DeleteFunc(left, func(e trueEpoch) bool { return e.Epoch == number })
	}
	for _, e := range left {
		if !e.Optional {
			wrong = append(wrong, fmt.Sprintf("epoch %d is absent", e.Epoch))
		}
	}
	return wrong
}

var accuracyName = regexp.MustCompile(`(?i)acc|validation.score`)

// check returns what is wrong or absent in the report of an epoch.
func (w *truth) check(e trueEpoch, r EpochReport) (wrong []string) {
	isNear := func(v float64, all []float64, what string) bool {
		return slices.ContainsFunc(all, func(b float64) bool {
			return math.Abs(v-b) <= w.Tolerance[what]*1.01+1e-6*math.Abs(b)
		})
	}
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("epoch %d: ", r.Epoch)+fmt.Sprintf(format, args...))
	}
	if !slices.Contains(w.Unchecked, "loss") {
		fit := e.LossOK
		if e.Loss != nil {
			fit = append([]float64{*e.Loss}, fit...)
		}
		switch {
		case r.Loss != nil && !isNear(*r.Loss, fit, "loss"):
			say("loss %g, want %v", *r.Loss, fit)
		case r.Loss == nil && e.Loss != nil && (w.Loss == nil || *w.Loss):
			say("no loss")
		}
	}
	isAccuracy := accuracyName.MatchString(e.MetricName)
	lower, fit := strings.ToLower(e.MetricName), e.AcceptAcc
	if e.Metric != nil && (isAccuracy || strings.Contains(lower, "auc") || strings.Contains(lower, "map")) {
		fit = append([]float64{*e.Metric}, fit...)
	}
	switch {
	case r.Accuracy != nil && !isNear(*r.Accuracy, fit, "metric"):
		say("accuracy %g, want %v", *r.Accuracy, fit)
	case r.Accuracy == nil && isAccuracy && (w.Metric == nil || *w.Metric):
		say("no %s", e.MetricName)
	}
	switch {
	case r.Seconds == 0:
	case w.Below != nil && r.Seconds >= *w.Below:
		say("%g s, want less than %g s", r.Seconds, *w.Below)
	case slices.Contains(w.Unchecked, "seconds"):
	case e.Seconds == nil:
		say("%g s, and the log has no duration", r.Seconds)
	case !isNear(r.Seconds, []float64{*e.Seconds}, "seconds"):
		say("%g s, want %g s", r.Seconds, *e.Seconds)
	}
	return wrong
}
