package figures_test

import (
	"strings"
	"testing"

	"courier/simulate/figures"
)

func TestComparisons_MeetTheirTargets(t *testing.T) {
	c := &figures.Comparisons{}
	c.Add("time", 0.4, "", []float64{0.3, 0.5}, false)
	c.Add("time", 0.4, "", []float64{0.3, 0.5}, true)
	c.AddIncrease("speed", 0.5, "", []float64{0.6, 0.7})
	c.AddIncrease("speed", 0.5, "", []float64{0.4, 0.7})
	c.AddLevel("kept", 0.97, "", []float64{0.97, 1})
	c.AddLevel("kept", 0.97, "", []float64{0.9, 1})
	c.AddLimit("late", 0.03, "", []float64{0, 0.02})
	c.AddLimit("late", 0.03, "", []float64{0, 0.04})
	c.AddCount("moves", 3.4, "", []float64{2, 3})
	c.AddCount("moves", 3.4, "", []float64{2, 4})
	for i, want := range []bool{false, true, true, false, true, false, true, false, true, false} {
		if f := c.Figures[i]; f.IsMet != want {
			t.Errorf("figure %d (%s): met %t, want %t", i, f.Name, f.IsMet, want)
		}
	}

	var text strings.Builder
	if err := c.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"-50.0 to -30.0 %", "+60.0 to +70.0 %", "97.0 to 100.0 %", "2.0 to 3.0 ", "yes, by the best",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &text)
		}
	}
}
