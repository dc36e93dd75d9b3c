package report

import (
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// chronicle publishes events of regressors, a minute apart.
type chronicle struct {
	t        *testing.T
	bus      *bus.Bus
	at       time.Time
	revision uint64
}

func newChronicle(t *testing.T) *chronicle {
	return &chronicle{t: t, bus: bustest.New(t), at: time.Unix(1_790_000_000, 0).UTC()}
}

func (c *chronicle) publish(e schemas.Event) {
	c.t.Helper()
	if _, err := c.bus.Publish(c.t.Context(), e); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chronicle) stamp(id string) schemas.Stamp {
	c.at = c.at.Add(time.Minute)
	return schemas.Stamp{EventID: id, At: c.at}
}

// digestOf returns a whole digest that begins with a letter.
func digestOf(letter string) string { return strings.Repeat(letter, 64) }

func (c *chronicle) trained(letter, reason string, heldOutError float64) {
	c.publish(&schemas.Trained{
		Stamp:  c.stamp(letter + "/trained"),
		Target: schemas.TargetEpochTime,
		Reason: reason,
		Fitted: fittedAs(letter, heldOutError),
	})
}

func fittedAs(letter string, heldOutError float64) schemas.Fitted {
	return schemas.Fitted{
		ModelDigest:    digestOf(letter),
		ManifestDigest: digestOf(letter),
		Examples:       40,
		Configurations: 8,
		HeldOutError:   heldOutError,
		FitSeconds:     0.25,
	}
}

func (c *chronicle) promoted(letter, replaced, by, reason string) {
	c.revision++
	e := &schemas.Promoted{
		Stamp:    c.stamp(schemas.PromotedID(schemas.TargetEpochTime, c.revision)),
		Target:   schemas.TargetEpochTime,
		Revision: c.revision,
		Fitted:   fittedAs(letter, 0.04),
		Grounds:  schemas.Grounds{Reason: reason, DecidedBy: by},
	}
	if replaced != "" {
		e.Replaced = digestOf(replaced)
	}
	c.publish(e)
}

// publishAllKinds publishes all kinds of events: a first regressor, a drift, a regressor that no
// advisor can use, a later fit, and a promotion on request.
func (c *chronicle) publishAllKinds() {
	c.trained("a", "the first regressor", 0.125)
	c.promoted("a", "", schemas.DecidedFirst, "the first regressor")
	c.publish(&schemas.Drift{
		Stamp:         c.stamp(schemas.DriftID(schemas.TargetEpochTime, 7, "scope")),
		Target:        schemas.TargetEpochTime,
		CauseSequence: 7,
		ModelDigest:   digestOf("a"),
		Scope:         schemas.DriftNodeType,
		NodeType:      "x, 8 cores",
		SinceAt:       c.at,
		Ratio:         1.3,
		BeforeRatio:   1,
		Jobs:          4,
		State:         schemas.DriftActive,
		Message:       "jobs on nodes of type <x> take 1.30 times as long as predicted",
	})
	c.trained("b", "a run has ended", 0.25)
	c.publish(&schemas.Rejected{
		Stamp:       c.stamp(schemas.RejectedID(schemas.TargetEpochTime, digestOf("b"))),
		Target:      schemas.TargetEpochTime,
		ModelDigest: digestOf("b"),
		Reason:      "bad regressor file",
	})
	c.trained("c", "enough new epochs", 0.0625)
	c.promoted("c", "a", schemas.DecidedFit, "enough new epochs")
	c.promoted("a", "c", schemas.DecidedRequest, "rolled back")
}

func TestReadLife_ReturnsTheMomentsOfEachRegressor(t *testing.T) {
	c := newChronicle(t)
	c.publishAllKinds()
	for letter, want := range map[string]string{
		"a": "trained, promoted first, drift, replaced by c, promoted request",
		"b": "trained, rejected",
		"c": "trained, promoted fit, replaced by a",
	} {
		life, err := ReadLife(t.Context(), c.bus, schemas.TargetEpochTime, digestOf(letter))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range life {
			line := m.Kind
			switch m.Kind {
			case momentReplaced:
				line += " by " + m.Other[:1]
			case momentPromoted:
				line += " " + m.DecidedBy
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("life of %s: %q, want %q", letter, got, want)
		}
	}
}

func TestFindRegressor_NamesARegressorByTargetOrDigits(t *testing.T) {
	all := []schemas.RegressorVersion{
		{
			Target: "epoch_time",
			State:  schemas.RegressorChampion,
			Fitted: schemas.Fitted{ModelDigest: "abcdef01"},
		},
		{
			Target: "epoch_time",
			State:  schemas.RegressorFormer,
			Fitted: schemas.Fitted{ModelDigest: "abcdef02"},
		},
		{
			Target: "accuracy",
			State:  schemas.RegressorTrained,
			Fitted: schemas.Fitted{ModelDigest: "cccccc"},
		},
	}
	for _, c := range []struct{ name, want, wrong string }{
		{"epoch_time", "abcdef01", ""},
		{"abcdef02", "abcdef02", ""},
		{"cccccc", "cccccc", ""},
		{
			"abcdef",
			"",
			"2 digests begin with abcdef, such as abcdef01 of epoch_time and abcdef02 of epoch_time:" +
				" give more digits",
		},
		{"accuracy", "", "there is no champion of accuracy yet"},
		{"abcdef0123", "", "no digest begins with abcdef0123"},
	} {
		v, err := FindRegressor(all, c.name)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("FindRegressor(%s) = %v, want an error with %q", c.name, err, c.wrong)
			}
		case err != nil || v.ModelDigest != c.want:
			t.Errorf("FindRegressor(%s) = %v, %v, want %s", c.name, v, err, c.want)
		}
	}
}

func TestRegressors_ShowCorrections(t *testing.T) {
	v := schemas.RegressorVersion{
		Target:      schemas.TargetEpochTime,
		State:       schemas.RegressorChampion,
		Corrections: []*schemas.Drift{{Target: schemas.TargetEpochTime, Message: "net takes 1.50 times as long"}},
	}
	var list, one strings.Builder
	Regressors(&list, &schemas.RegressorList{Regressors: []schemas.RegressorVersion{v}})
	(&RegressorHistory{RegressorVersion: v}).WriteText(&one)
	for got, want := range map[string]string{
		list.String(): "epoch_time is corrected: net takes 1.50 times as long.",
		one.String():  "corrected\tnet takes 1.50 times as long",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
