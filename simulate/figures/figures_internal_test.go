package figures

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestComparisons_MeetTheirTargets(t *testing.T) {
	c := &Comparisons{}
	for _, want := range []struct {
		add   func()
		isMet bool
	}{
		{func() { c.add(kindReduction, "time", bar(0.4), 0.3, 0.49) }, false}, // the mean counts
		{func() { c.add(kindReduction, "time", bar(0.4), 0.3, 0.5) }, true},
		{func() { c.add(kindReduction, "time", bar(0.4), 0.3999) }, false},
		{func() { c.add(kindReduction, "time", reported(0.4), 0.396) }, true},
		{func() { c.add(kindReduction, "time", reported(0.4), 0.394) }, false},
		{func() { c.add(kindReduction, "time", reported(0.145), 0.1446) }, true},
		{func() { c.add(kindReduction, "time", reported(0.145), 0.144) }, false},
		{func() { c.add(kindLevel, "kept", bar(0.97), 0.97) }, true},
		{func() { c.addReductions("time", bar(0), []float64{-1, 1}) }, true},
		{func() { c.add(kindLimit, "late", bar(0.03), 0.03) }, true},
		{func() { c.add(kindLimit, "late", bar(0.03), 0, 0.08) }, false},
		{func() { c.add(kindSeconds, "time", within(390.5, 0.5), 390) }, true},
		{func() { c.add(kindSeconds, "time", within(390.5, 0.5), 391.1) }, false},
	} {
		want.add()
		i := len(c.Figures) - 1
		if f := c.Figures[i]; f.IsMet == nil || *f.IsMet != want.isMet {
			t.Errorf("figure %d (%s, reached %g): met %v, want %t", i, f.Name, f.Reached, f.IsMet, want.isMet)
		}
	}
}

func TestComparisons_AreReadable(t *testing.T) {
	c := &Comparisons{}
	c.begin("a", "")
	c.add(kindReduction, "time", bar(0.4), 0.3, 0.5)
	c.begin("b", "")
	c.add(kindLevel, "speed", target{}, 0.6)
	c.begin("c", "")
	c.add(kindLimit, "late", bar(0.03), 0.02)
	for _, v := range []float64{0.1, 0.2, 0.3} {
		c.begin("d", "tunings")
		c.add(kindReduction, "cost", bar(0.2), v)
	}
	c.begin("e", "")
	c.add(kindSeconds, "makespan", within(390.5, 0.5), 390)
	var text strings.Builder
	c.WriteText(&text)
	want := `variant	figure	target	reached	met	
a	time	-40.0 %	-40.0 % (-50.0 to -30.0 %)	yes	
b	speed	-	60.0 %	-	
c	late	at most 3.0 %	2.0 %	yes	
tunings	cost	-20.0 %	-30.0 to -10.0 %	2 of 3	
e	makespan	390.5 s	390.0 s	yes	
`
	if text.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", &text, want)
	}
	data, err := json.Marshal(c.Figures[1])
	if err != nil || !strings.Contains(string(data), `"target":null`) || !strings.Contains(string(data), `"met":null`) {
		t.Errorf("a figure without a target is %s, %v", data, err)
	}
}
