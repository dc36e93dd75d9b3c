package simulate

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Each use of chance has a stream of its own, so that one more draw in one place
// changes nothing elsewhere.
const (
	streamArrivals uint64 = iota + 1
	streamWarmUp
	streamRun
	streamRandomRule
	streamInformed
)

// chances returns the numbers that belong to a name: equal seeds, streams and
// names give equal numbers, whoever asks and in whatever order.
func chances(seed, stream uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed^stream<<56, h.Sum64()))
}

// luck is the noise of one run. It belongs to the job and the number of the
// epoch, so that every rule meets the same.
type luck struct {
	startup  float64   // by what the start-up is multiplied
	epochs   []float64 // by what each epoch is multiplied: part of the run times part of the epoch
	accuracy []float64 // what is added to each measured accuracy
}

func (n *Noise) luck(seed uint64, job string, epochs int) luck {
	r := chances(seed, streamRun, job)
	run := math.Exp(n.RunRatio * r.NormFloat64())
	l := luck{startup: run * math.Exp(n.EpochRatio*r.NormFloat64())}
	for range epochs {
		l.epochs = append(l.epochs, run*math.Exp(n.EpochRatio*r.NormFloat64()))
		l.accuracy = append(l.accuracy, n.Accuracy*r.NormFloat64())
	}
	return l
}
