package decide_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/schemas"
)

// What the advisor predicts is what package leaves reads from the served file: other leaves give other
// times, and a file that was changed on the way is refused.
func TestLoadRegressor_PredictsByTheLeavesOfTheFile(t *testing.T) {
	files, err := advisortest.Fit(t.Context(), advisortest.FixtureRuns(schemas.Hardware{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := files[schemas.TargetEpochTime]
	const slower = 0.1 // logarithmic
	changed := withLeaves(t, string(f.Model), func(v float64) float64 { return v + slower })
	manifest := strings.ReplaceAll(string(f.Manifest), digestOf(string(f.Model)), digestOf(changed))

	seconds := func(model, manifest string) float64 {
		r, err := decide.LoadRegressor([]byte(model), []byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		q := &decide.Question{Request: request(slo(time.Hour)), Nodes: []string{"n"}}
		return *decide.Decide(q, decide.Regressors{EpochTime: r}, time.Now()).Alternatives[0].PredictedSeconds
	}
	before, after := seconds(string(f.Model), string(f.Manifest)), seconds(changed, manifest)
	if want := math.Exp(slower); math.Abs(after/before/want-1) > 1e-4 {
		t.Errorf("with leaves of %.3f times the seconds, %g s became %g s", want, before, after)
	}
	if _, err := decide.LoadRegressor([]byte(changed), f.Manifest); err == nil {
		t.Error("a file that is not the one of the manifest is loaded")
	}
}

func digestOf(model string) string {
	sum := sha256.Sum256([]byte(model))
	return hex.EncodeToString(sum[:])
}

// withLeaves changes the values of all leaves of a file in LightGBM's format.
func withLeaves(t *testing.T, model string, change func(float64) float64) string {
	t.Helper()
	lines := strings.Split(model, "\n")
	for i, line := range lines {
		text, isLeaves := strings.CutPrefix(line, "leaf_value=")
		if !isLeaves {
			continue
		}
		values := strings.Fields(text)
		for k, v := range values {
			x, err := strconv.ParseFloat(v, 64)
			if err != nil {
				t.Fatal(err)
			}
			values[k] = strconv.FormatFloat(change(x), 'g', -1, 64)
		}
		lines[i] = "leaf_value=" + strings.Join(values, " ")
	}
	changed := strings.Join(lines, "\n")
	for _, line := range lines {
		if size, isSize := strings.CutPrefix(line, "tree_sizes="); isSize {
			n, err := strconv.Atoi(size)
			if err != nil {
				t.Fatal(err)
			}
			size := fmt.Sprint("tree_sizes=", n+len(changed)-len(model))
			changed = strings.Replace(changed, line, size, 1)
		}
	}
	return changed
}
