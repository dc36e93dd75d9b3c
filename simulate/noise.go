package simulate

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Each use of random numbers has its own stream, so that an additional draw does not change other
// numbers.
const (
	streamArrivals uint64 = iota + 1
	streamWarmUp
	streamRun
	streamRandomRule
	streamInformed
)

// randomFor returns the random numbers of a seed, a stream and a name. They do not depend on the
// order of calls.
func randomFor(seed, stream uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // It never fails.
	return rand.New(rand.NewPCG(seed^stream<<56, h.Sum64()))
}

// runNoise is the noise of one run. It depends on the job and the number of the epoch only, so that
// every rule meets the same noise.
type runNoise struct {
	startup  float64   // factor of the start-up
	epochs   []float64 // factor of each epoch: that of the run times that of the epoch
	accuracy []float64 // error of each measured accuracy
}

func (n *Noise) runNoise(seed uint64, job string, epochs int) runNoise {
	r := randomFor(seed, streamRun, job)
	run := math.Exp(n.RunRatio * r.NormFloat64())
	l := runNoise{startup: run * math.Exp(n.EpochRatio*r.NormFloat64())}
	for range epochs {
		l.epochs = append(l.epochs, run*math.Exp(n.EpochRatio*r.NormFloat64()))
		l.accuracy = append(l.accuracy, n.Accuracy*r.NormFloat64())
	}
	return l
}
