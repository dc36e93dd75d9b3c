package evidence_test

import (
	"testing"

	"courier/regress/evidence"
)

// Missing names the reason and the measured range.
func TestPredictor_NamesWhatIsMissing(t *testing.T) {
	var runs []evidence.Run
	for _, batch := range []int{16, 32, 64, 1024} {
		for cpus, jobs := range map[int]float64{2: 1, 4: 2} {
			c := configurationOf("a", batch, "x")
			c.CPUs, c.ConcurrentJobs = cpus, jobs
			runs = append(runs, runsOf(c, 1000/float64(batch))...)
		}
	}
	runs = append(runs, runsOf(configurationOf("b", 16, "x"), 60)...)
	runs = append(runs, runsOf(configurationOf("b", 32, "x"), 30)...)
	_, p := fit(t, runs)
	for _, c := range []struct {
		name   string
		change func(*evidence.Configuration)
		want   evidence.Missing
	}{
		{"a configuration that ran", func(c *evidence.Configuration) {}, evidence.Missing{}},
		{
			"between batch sizes", func(c *evidence.Configuration) { c.BatchSize = 48 },
			evidence.Missing{},
		},
		{
			"another model", func(c *evidence.Configuration) { c.Model = "c" },
			evidence.Missing{Lacks: evidence.LacksModel},
		},
		{
			"another node", func(c *evidence.Configuration) { c.NodeType = "y" },
			evidence.Missing{Lacks: evidence.LacksNodeType},
		},
		{
			"too small a batch", func(c *evidence.Configuration) { c.BatchSize = 8 },
			evidence.Missing{Lacks: evidence.LacksBatchSize, Low: 16, High: 1024},
		},
		{
			"too large a batch", func(c *evidence.Configuration) { c.BatchSize = 2048 },
			evidence.Missing{Lacks: evidence.LacksBatchSize, Low: 16, High: 1024},
		},
		{
			"too far between", func(c *evidence.Configuration) { c.BatchSize = 256 },
			evidence.Missing{Lacks: evidence.LacksNeighbours, Low: 64, High: 1024},
		},
		{
			"too few CPUs", func(c *evidence.Configuration) { c.CPUs = 1 },
			evidence.Missing{Lacks: evidence.LacksCPUs, Low: 2, High: 4},
		},
		{
			"too many neighbours", func(c *evidence.Configuration) { c.ConcurrentJobs = 5 },
			evidence.Missing{Lacks: evidence.LacksLoad, Low: 1, High: 2},
		},
		{
			"two configurations",
			func(c *evidence.Configuration) { *c = configurationOf("b", 24, "x") },
			evidence.Missing{Lacks: evidence.LacksConfigurations, Low: 2, High: 2},
		},
	} {
		at := configurationOf("a", 32, "x")
		at.CPUs, at.ConcurrentJobs = 2, 1
		c.change(&at)
		got, e := p.Missing(at), p.Epochs(at, 3)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if e.Support.Promisable() != (got.Lacks == "") {
			t.Errorf("%s: support %s with missing evidence %+v, want one of the two",
				c.name, e.Support, got)
		}
	}
}
