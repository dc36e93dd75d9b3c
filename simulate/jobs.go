package simulate

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"courier/schemas"
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

// Submission is a submission with its noise.
type Submission struct {
	Request schemas.JobRequest // request as submitted
	At      float64            // time of submission in seconds since origin
	family  *Family
	noise   runNoise
}

// Jobs draws submissions of a Poisson process. The same arguments give the same jobs.
func (w *World) Jobs(submissions int, confidence float64, seed uint64) []Submission {
	r := randomFor(seed, streamArrivals, "")
	gap, at := w.gapSeconds(), 0.0
	jobs := make([]Submission, submissions)
	for i := range jobs {
		at += gap * r.ExpFloat64()
		jobs[i] = w.job(fmt.Sprintf("sim-%06d", i+1), at, confidence, r, seed)
	}
	return jobs
}

func (w *World) job(id string, at, confidence float64, r *rand.Rand, seed uint64) Submission {
	f := w.drawFamily(r)
	q := schemas.JobRequest{
		JobID:           id,
		Model:           f.Model,
		TrainingSamples: f.TrainingSamples,
		BatchSizes:      f.BatchSizes,
		Confidence:      confidence,
	}
	q.CPUs = f.CPUs[r.IntN(len(f.CPUs))]
	q.Epochs = f.Epochs[r.IntN(len(f.Epochs))]
	ratio := w.SLO.LeastRatio + (w.SLO.MostRatio-w.SLO.LeastRatio)*r.Float64()
	slo := time.Duration(ratio * f.fastest(&q) * float64(time.Second))
	q.SLO = schemas.Duration(max(slo.Round(time.Millisecond), time.Millisecond))
	return Submission{Request: q, At: at, family: f, noise: w.Noise.runNoise(seed, id, q.Epochs)}
}

func (w *World) drawFamily(r *rand.Rand) *Family {
	total := 0.0
	for i := range w.Families {
		total += w.Families[i].Share
	}
	left := total * r.Float64()
	for i := range w.Families {
		if left -= w.Families[i].Share; left < 0 {
			return &w.Families[i]
		}
	}
	return &w.Families[len(w.Families)-1]
}

// fastest returns the shortest time of a request in seconds: with its fastest candidate, including
// the start-up, without neighbours and noise.
func (f *Family) fastest(q *schemas.JobRequest) float64 {
	least := math.Inf(1)
	for _, c := range candidates(q) {
		least = min(least, f.EpochSeconds.alone(c.batch, c.cpus))
	}
	return f.StartupSeconds + float64(q.Epochs)*least
}

// gapSeconds returns the mean time between two submissions that results in World.Load.
func (w *World) gapSeconds() float64 {
	shares, work, cores := 0.0, 0.0, 0.0
	for i := range w.Families {
		shares += w.Families[i].Share
		work += w.Families[i].Share * w.Families[i].meanCoreSeconds()
	}
	for _, n := range w.Nodes {
		cores += float64(n.Cores)
	}
	return work / shares / (w.Load * cores)
}

// meanCoreSeconds returns the mean of CPUs times seconds over all jobs of the family, with equally
// likely candidates.
func (f *Family) meanCoreSeconds() float64 {
	epochs := 0.0
	for _, e := range f.Epochs {
		epochs += float64(e) / float64(len(f.Epochs))
	}
	sum := 0.0
	for _, list := range f.CPUs {
		for _, cpus := range list {
			for _, batch := range f.BatchSizes {
				seconds := f.StartupSeconds + epochs*f.EpochSeconds.alone(uint32(batch),
					uint32(cpus))
				sum += float64(cpus) * seconds / float64(len(f.CPUs)*len(list)*len(f.BatchSizes))
			}
		}
	}
	return sum
}

// jobCandidate is a batch size and number of CPUs for a job.
type jobCandidate struct{ batch, cpus uint32 }

func candidates(q *schemas.JobRequest) []jobCandidate {
	all := make([]jobCandidate, 0, len(q.CPUs)*len(q.BatchSizes))
	for _, cpus := range q.CPUs {
		for _, batch := range q.BatchSizes {
			all = append(all, jobCandidate{uint32(batch), uint32(cpus)})
		}
	}
	return all
}
