package collector

import (
	"os"
	"strings"
	"testing"
	"time"
)

// What an epoch costs the node beside the job: its load, its process tree and its cgroup.
func BenchmarkObserve_Epoch(b *testing.B) {
	o := NewObserver(quiet)
	mark, used := o.Mark(), consumed(os.Getpid(), nil)
	b.ReportAllocs()
	for b.Loop() {
		next := o.Mark()
		_ = Between(mark, next)
		now := consumed(os.Getpid(), nil)
		_ = now.since(used)
		mark, used = next, now
	}
}

func BenchmarkOutput(b *testing.B) {
	for _, test := range []struct{ name, line string }{
		{"bigdl iteration", info + at(3, 320, "91.114175155") + "Trained 132.0 records in 0.05 seconds. Throughput is 2560.6 records/second. Loss is 0.15130447. Net's hyper parameters: Current learning rate is 0.05.\n"},
		{"json epoch", `{"epoch":3,"seconds":2.5,"loss":0.25,"accuracy":0.97}` + "\n"},
		{"other line", "step 17 of 400, all is well with the network and its data\n"},
		{"line of a megabyte", strings.Repeat("x", 1<<20) + "\n"},
	} {
		b.Run(test.name, func(b *testing.B) {
			o, err := newOutput(FormatAuto, "")
			if err != nil {
				b.Fatal(err)
			}
			line := []byte(test.line)
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				o.write(0, line, time.Time{})
			}
		})
	}
}
