package output

import (
	"strings"
	"testing"
)

// Metrics with names of their own are read as the user says, from text, tables, JSON and CSV.
func TestParser_ReadsMetricsThatTheUserNames(t *testing.T) {
	kinds := MetricKinds{"fid": "loss", "agreement": "accuracy", "Miss_Ratio": "error"}
	for _, c := range []struct {
		name, text string
		isFile     bool
		accuracy   float64 // 0: none
		loss       float64 // 0: none
		metric     string
		value      float64
	}{
		{"a loss in text", "Epoch 1/2 - val_fid: 41.5\nEpoch 2/2 - val_fid: 40\n", false, 0, 40, "val fid", 40},
		{"an accuracy in text", "Epoch 1 agreement 71 %\nEpoch 2 agreement 81 %\n", false, 0.81, 0,
			"agreement", 81},
		{"an error in text", "epoch 1: val miss ratio 0.5\nepoch 2: val miss ratio 0.25\n", false, 0.75, 0,
			"val miss ratio", 0.25},
		{"an error in JSON", "{\"epoch\":1,\"miss_ratio\":0.5}\n{\"epoch\":2,\"miss_ratio\":0.2}\n", false,
			0.8, 0, "miss ratio", 0.2},
		{"an accuracy in CSV", "epoch,agreement\n0,0.5\n1,0.75\n", true, 0.75, 0, "agreement", 0.75},
	} {
		var reports []EpochReport
		if c.isFile {
			g := NewLog(kinds)
			reports = append(g.Write([]byte(c.text), noon), g.Close(noon)...)
		} else {
			p := newParserFor(t, 0)
			if err := p.SetMetrics(kinds); err != nil {
				t.Fatal(err)
			}
			reports = append(p.Write(0, []byte(c.text), noon), p.Close(noon, true)...)
		}
		if len(reports) != 2 {
			t.Errorf("%s: %d epochs, want 2: %+v", c.name, len(reports), reports)
			continue
		}
		r := reports[1]
		number := func(v *float64) float64 {
			if v == nil {
				return 0
			}
			return *v
		}
		if number(r.Accuracy) != c.accuracy || number(r.Loss) != c.loss || r.Metric.Name != c.metric ||
			r.Metric.Value != c.value {
			t.Errorf("%s: accuracy %g, loss %g, metric %+v, want %g, %g, %s %g", c.name, number(r.Accuracy),
				number(r.Loss), r.Metric, c.accuracy, c.loss, c.metric, c.value)
		}
	}
}

func TestParser_RefusesAnUnknownKindOfMetric(t *testing.T) {
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	err = p.SetMetrics(MetricKinds{"fid": "down"})
	if err == nil || !strings.Contains(err.Error(),
		"--metric fid=down: want a name and accuracy, error, loss") {
		t.Errorf("SetMetrics = %v, want an error that names the kinds", err)
	}
}
