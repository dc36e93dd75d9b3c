package advisor

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
)

// BenchmarkAdmission measures admissions to separate nodes, one after the other, with a policy and
// two advisors.
func BenchmarkAdmission(b *testing.B) {
	for _, policy := range []string{schemas.AdmissionProtect, schemas.AdmissionQueue} {
		b.Run(policy, func(b *testing.B) {
			bus, _ := startWithPolicy(b, policy)
			n := 0
			for b.Loop() {
				n++
				q := manyEpochs(fmt.Sprintf("job-%d", n), 100*time.Minute)
				q.Nodes = []string{fmt.Sprintf("node-%d", n)}
				if v, a := verdict(b, bus, q); v != schemas.Admitted {
					b.Fatalf("%s: %s", v, a.Message)
				}
			}
		})
	}
}
