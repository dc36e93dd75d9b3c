package schemas_test

import (
	"testing"

	"courier/schemas"
)

func TestModelLevel_MarksSeparatorsWithinNames(t *testing.T) {
	for _, c := range []struct{ model, dataset, level string }{
		{"resnet50", "", "resnet50"},
		{"resnet50", "cifar10", "resnet50@cifar10"},
		{"resnet50@cifar10", "", `resnet50\@cifar10`},
		{"a@", "b", `a\@@b`},
		{"a", "@b", `a@\@b`},
		{`a\`, "b", `a\\@b`},
		{`a\@b`, `c\`, `a\\\@b@c\\`},
		{"", "", ""},
	} {
		if got := schemas.ModelLevel(c.model, c.dataset); got != c.level {
			t.Errorf("ModelLevel(%q, %q) = %q, want %q", c.model, c.dataset, got, c.level)
		}
	}
}

// Different pairs have different levels. Otherwise the runs of one pair would be evidence for another.
func FuzzModelLevel(f *testing.F) {
	f.Add("a@", "b", "a", "@b")
	f.Add(`a\`, "b", `a\@b`, "")
	f.Fuzz(func(t *testing.T, model, dataset, otherModel, otherDataset string) {
		level := schemas.ModelLevel(model, dataset)
		same := model == otherModel && dataset == otherDataset
		if other := schemas.ModelLevel(otherModel, otherDataset); (level == other) != same {
			t.Errorf("%q, %q and %q, %q have the levels %q and %q", model, dataset, otherModel,
				otherDataset, level, other)
		}
	})
}
