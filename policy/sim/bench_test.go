package sim_test

import (
	"testing"

	"courier/policy/sim"
)

// BenchmarkSimulate plays 1,000 submissions of the default world; of the rules
// with regressors see services/courier.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name string
		rule func() sim.Rule
	}{
		{"random", func() sim.Rule { return sim.NewRandom(7) }},
		{"largest", sim.NewLargest},
		{"oracle", sim.NewOracle},
	} {
		b.Run("rule="+c.name+"/submissions=1000", func(b *testing.B) {
			s := sim.NewScenario(sim.DefaultWorld(), 1000, 0.95, 7)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Play(b.Context(), c.rule(), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
		})
	}
}
