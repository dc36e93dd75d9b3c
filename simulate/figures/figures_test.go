package figures_test

import (
	"encoding/json"
	"strings"
	"testing"

	"courier/simulate/figures"
)

func TestComparisons_MeetTheirTargets(t *testing.T) {
	c := &figures.Comparisons{}
	for _, want := range []struct {
		add   func()
		isMet bool
	}{
		{func() { c.Add(figures.Reduction, "time", figures.Bar(0.4), 0.3, 0.49) }, false}, // the mean counts
		{func() { c.Add(figures.Reduction, "time", figures.Bar(0.4), 0.3, 0.5) }, true},
		{func() { c.Add(figures.Reduction, "time", figures.Bar(0.4), 0.3999) }, false},
		{func() { c.Add(figures.Reduction, "time", figures.Reported(0.4), 0.396) }, true},
		{func() { c.Add(figures.Reduction, "time", figures.Reported(0.4), 0.394) }, false},
		{func() { c.Add(figures.Reduction, "time", figures.Reported(0.145), 0.1446) }, true},
		{func() { c.Add(figures.Reduction, "time", figures.Reported(0.145), 0.144) }, false},
		{func() { c.Add(figures.Increase, "speed", figures.Bar(0.5), 0.6, 0.7) }, true},
		{func() { c.Add(figures.Level, "kept", figures.Bar(0.97), 0.97) }, true},
		{func() { c.AddReductions("time", figures.Bar(0), []float64{-1, 1}) }, true},
		{func() { c.Add(figures.Limit, "late", figures.Bar(0.03), 0.03) }, true},
		{func() { c.Add(figures.Limit, "late", figures.Bar(0.03), 0, 0.08) }, false},
		{func() { c.Add(figures.Count, "moves", figures.Bar(3.4), 2, 3) }, true},
		{func() { c.Add(figures.Count, "moves", figures.Reported(3.4), 3.404) }, true},
		{func() { c.Add(figures.Seconds, "time", figures.Within(390.5, 0.5), 390) }, true},
		{func() { c.Add(figures.Seconds, "time", figures.Within(390.5, 0.5), 391.1) }, false},
	} {
		want.add()
		i := len(c.Figures) - 1
		if f := c.Figures[i]; f.IsMet == nil || *f.IsMet != want.isMet {
			t.Errorf("figure %d (%s, reached %g): met %v, want %t", i, f.Name, f.Reached, f.IsMet, want.isMet)
		}
	}
}

func TestComparisons_AreReadable(t *testing.T) {
	c := &figures.Comparisons{}
	c.Begin("a", "")
	c.Add(figures.Reduction, "time", figures.Bar(0.4), 0.3, 0.5)
	c.Begin("b", "")
	c.Add(figures.Increase, "speed", figures.Target{}, 0.6)
	c.Begin("c", "")
	c.Add(figures.Limit, "late", figures.Bar(0.03), 0.02)
	for _, v := range []float64{0.1, 0.2, 0.3} {
		c.Begin("d", "tunings")
		c.Add(figures.Reduction, "cost", figures.Bar(0.2), v)
	}
	c.Begin("e", "")
	c.Add(figures.Seconds, "makespan", figures.Within(390.5, 0.5), 390)
	var text strings.Builder
	if err := c.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	want := `variant  figure    target         reached                     met     
a        time      -40.0 %        -40.0 % (-50.0 to -30.0 %)  yes     
b        speed     -              +60.0 %                     -       
c        late      at most 3.0 %  2.0 %                       yes     
tunings  cost      -20.0 %        -30.0 to -10.0 %            2 of 3  
e        makespan  390.5 s        390.0 s                     yes     
`
	if text.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", &text, want)
	}
	data, err := json.Marshal(c.Figures[1])
	if err != nil || !strings.Contains(string(data), `"target":null`) || !strings.Contains(string(data), `"met":null`) {
		t.Errorf("a figure without a target is %s, %v", data, err)
	}
}
