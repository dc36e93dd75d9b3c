package report

import (
	"bytes"
	"strings"
	"testing"

	"courier/schemas"
)

// correction is a correction of batch sizes from 512.
func (c *chronicle) correction(
	revision uint64, state string, ratio float64, message string,
) *schemas.Drift {
	return &schemas.Drift{
		Stamp:  c.stamp(schemas.CorrectionID(schemas.TargetEpochTime, revision, "a")),
		Target: schemas.TargetEpochTime, ModelDigest: digestOf("a"), Scope: schemas.DriftModel,
		Model: "net", BatchSizeFrom: 512, SinceAt: c.at, Ratio: ratio, BeforeRatio: 1.5, Jobs: 12,
		State: state, Message: message,
	}
}

// The list, the text of one regressor and the page show corrections; the end of a correction is not
// an alarm.
func TestRegressors_ShowCorrections(t *testing.T) {
	c := newChronicle(t)
	c.trained("a", "the first regressor", 0.125)
	c.promoted("a", "", schemas.DecidedFirst, "the first regressor", schemas.Judgement{})
	c.publish(c.correction(1, schemas.DriftActive, 1.5,
		"jobs of model net take 1.50 times as long"))
	life, err := ReadLife(t.Context(), c.bus)
	if err != nil {
		t.Fatal(err)
	}
	var list, shown, page bytes.Buffer
	if err := Regressors(&list, &schemas.RegressorList{Regressors: life.versions}); err != nil {
		t.Fatal(err)
	}
	v := life.versions[0]
	r := &RegressorHistory{v, life.Of(v.Target, v.ModelDigest)}
	if err := r.WriteText(&shown); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		list.String():  "epoch_time is corrected: jobs of model net take 1.50 times as long.",
		shown.String(): "corrected  jobs of model net take 1.50 times as long",
	} {
		if !strings.Contains(name, text) {
			t.Errorf("%q is missing in:\n%s", text, name)
		}
	}
	c.publish(c.correction(2, schemas.DriftReplaced, 1, "a fit has learned"))
	if life, err = ReadLife(t.Context(), c.bus); err != nil {
		t.Fatal(err)
	}
	if err := life.WriteHTML(&page, "", "1.2.3", c.at); err != nil {
		t.Fatal(err)
	}
	if got := life.versions[0].Corrections; len(got) != 0 {
		t.Errorf("corrections %+v after their end, want none", got)
	}
	for _, text := range []string{"1 drift alarms", "drift_end", "a fit has learned"} {
		if !strings.Contains(page.String(), text) {
			t.Errorf("%q is missing in the page", text)
		}
	}
}
