package advisor

import (
	"testing"
	"time"
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
			c := NewCluster()
			n := c.useNode("a")
			n.Cores = test.cores
			for _, cpus := range test.held {
				j := &Job{}
				j.Setting.CPUs, j.Setting.Nodes = cpus, []string{"a"}
				n.running = append(n.running, j)
			}
			if got := c.needsBusyCPUs("a", test.needed, time.Now()); got != test.want {
				t.Errorf("needsBusyCPUs = %t, want %t", got, test.want)
			}
		})
	}
}
