package collector

import (
	"testing"

	"courier/schemas"
)

// BenchmarkObserver_Load measures the cost of reading the load of the node, once per epoch.
func BenchmarkObserver_Load(b *testing.B) {
	o := NewObserver(quiet)
	b.ReportAllocs()

	for b.Loop() {
		var e schemas.Epoch
		o.Load(&e)
	}
}
