package regress_test

import (
	"errors"
	"math"
	"testing"

	"courier/regress"

	"github.com/google/go-cmp/cmp"
)

func TestClean_ReportsDroppedExamples(t *testing.T) {
	d := paperLike(200, 1)
	d.Weight = make([]float64, d.Len())
	for i := range d.Weight {
		d.Weight[i] = 1
	}
	d.Target[3], d.Target[4], d.Target[5], d.Target[6] = 0, -2, math.Inf(1), math.NaN()
	d.Columns[1][7], d.Columns[1][8] = math.NaN(), math.NaN()
	d.Weight[9] = -1
	got, dropped, err := d.Clean(math.SmallestNonzeroFloat64, math.MaxFloat64)
	if err != nil {
		t.Fatal(err)
	}
	want := []regress.Dropped{{"feature cpus is NaN", 2}, {"target is 0 or below", 2}, {"target is NaN", 1},
		{"target is above 1.7976931348623157e+308", 1}, {"weight is negative or not finite", 1}}
	if diff := cmp.Diff(want, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if got.Len() != 193 || got.Validate() != nil || len(got.Group) != 193 {
		t.Errorf("%d examples are left, want 193 that are valid: %v", got.Len(), got.Validate())
	}
}

func TestClean_RefusesWhenTooManyAreBad(t *testing.T) {
	d := paperLike(100, 1)
	for i := range 6 {
		d.Target[i] = 2
	}
	if _, _, err := d.Clean(3, math.MaxFloat64); !errors.Is(err, regress.ErrBadExamples) {
		t.Errorf("Clean = %v, want ErrBadExamples for 6 bad of 100", err)
	}
	d.Target[0] = 50
	if _, _, err := d.Clean(3, math.MaxFloat64); err != nil {
		t.Errorf("Clean = %v, want none for 5 bad of 100", err)
	}
}
