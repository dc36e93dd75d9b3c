package gateway

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"courier/schemas"
)

// busyTable returns a table of n nodes with points samples each, and the last samples.
func busyTable(n, points int) (*nodeTable, []*schemas.Sample) {
	table, samples := newNodeTable(), make([]*schemas.Sample, n)
	for i := range n {
		cpu, wait := float64(i%100)/100, 0.02
		samples[i] = &schemas.Sample{
			Node:            fmt.Sprintf("node-%05d", i),
			IntervalSeconds: 2,
			CPURatio:        &cpu,
			IOWaitRatio:     &wait,
		}
		for k := range points {
			samples[i].At = noon.Add(time.Duration(2*k) * time.Second)
			table.apply(samples[i], samples[i].At)
		}
	}
	return table, samples
}

// BenchmarkNodeTable_Apply measures the cost of a sample by the number of nodes.
func BenchmarkNodeTable_Apply(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			table, samples := busyTable(n, maxRecentPoints)
			at, i := samples[0].At, 0
			b.ReportAllocs()
			for b.Loop() {
				s := samples[i%n]
				s.At = at.Add(time.Duration(i/n) * time.Second)
				table.apply(s, s.At)
				i++
			}
		})
	}
}

// BenchmarkNodeTable_List measures the cost of a page, and the memory of the table.
func BenchmarkNodeTable_List(b *testing.B) {
	const n = 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table, samples := busyTable(n, maxRecentPoints)
	runtime.GC()
	runtime.ReadMemStats(&after)
	now := samples[0].At
	for _, c := range []struct {
		name  string
		query nodeQuery
	}{
		{"name", nodeQuery{limit: 24}},
		{"search", nodeQuery{limit: 24, search: "77"}},
		{"recent", nodeQuery{limit: 24, recent: 5 * time.Minute}},
		{"all", nodeQuery{limit: 1000}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.list(&c.query, now)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/node")
		})
	}
	runtime.KeepAlive(table)
}
