package simulate_test

import (
	"testing"

	"courier/simulate"
)

// BenchmarkSimulate plays 1,000 submissions of the default world. For the rules with regressors see
// learning_internal_test.go.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name string
		rule func() simulate.Rule
	}{
		{"random", func() simulate.Rule { return simulate.NewRandom(7) }},
		{"largest", simulate.NewLargest},
		{"oracle", simulate.NewOracle},
	} {
		b.Run("rule="+c.name+"/submissions=1000", func(b *testing.B) {
			s := simulate.NewScenario(simulate.DefaultWorld(), 1000, 0.95, 7)
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
