package services

import (
	"bytes"
	"strings"
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// Each fit has its own bar, which ends when the next one begins.
func TestFittingBars_FollowEachFit(t *testing.T) {
	var out bytes.Buffer
	bars := &FittingBars{Out: &out}
	for _, f := range []schemas.Fitting{
		{Target: "epoch_time", Done: 1, Planned: 2, Reason: "requested"},
		{Target: "epoch_time", Done: 2, Planned: 2, Reason: "requested"},
		{Target: "accuracy", Done: 3, Planned: 4, Reason: "drift"},
		{Target: "accuracy"},
	} {
		bars.Handle(&f)
	}
	bars.Handle(&schemas.Promoted{})
	bars.End()
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, line[:strings.LastIndex(line, ",")])
	}
	want := []string{
		"   [############............] 1/2 parts of epoch_time, requested",
		"   [########################] 2/2 parts of epoch_time, requested",
		"   [##################......] 3/4 parts of accuracy, drift",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("bars (-want +got):\n%s", d)
	}
}
