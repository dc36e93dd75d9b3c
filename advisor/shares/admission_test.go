package shares

import (
	"fmt"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// A job that nothing can be promised about waits for free CPUs, but never for an idle node.
func TestCluster_NeedsBusyCPUs(t *testing.T) {
	for _, test := range []struct {
		name   string
		cores  uint32
		held   []uint32
		needed float64
		want   bool
	}{
		{"idle", 2, nil, 4, false},
		{"enough are free", 4, []uint32{1, 1}, 2, false},
		{"one is missing", 4, []uint32{1, 2}, 2, true},
		{"unknown cores", 0, []uint32{8}, 2, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, now := cluster.New(), time.Unix(1_790_000_000, 0)
			c.Apply(&schemas.Sample{Node: "a", Cores: test.cores}, 1, now)
			for i, cpus := range test.held {
				e := &schemas.Started{Setting: schemas.Setting{CPUs: cpus, Nodes: []string{"a"}}}
				e.JobID, e.Run, e.At = fmt.Sprint("job-", i), 1, now
				c.Apply(e, uint64(i+2), now)
			}
			if got := NeedsBusyCPUs(c, "a", test.needed, now); got != test.want {
				t.Errorf("needsBusyCPUs = %t, want %t", got, test.want)
			}
		})
	}
}
