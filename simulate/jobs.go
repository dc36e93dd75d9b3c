package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"courier/schemas"
)

// Job is a submission that will come, with the noise that it will meet.
type Job struct {
	Request schemas.JobRequest // as its owner sends it
	At      float64            // seconds since the first judged second
	family  *Family
	luck    luck
}

// Jobs draws what comes to a world: submissions of a Poisson process. The same
// arguments give the same jobs.
func (w *World) Jobs(submissions int, confidence float64, seed uint64) []Job {
	r := chances(seed, streamArrivals, "")
	gap, at := w.gapSeconds(), 0.0
	jobs := make([]Job, submissions)
	for i := range jobs {
		at += gap * r.ExpFloat64()
		jobs[i] = w.job(fmt.Sprintf("sim-%06d", i+1), at, confidence, r, seed)
	}
	return jobs
}

func (w *World) job(id string, at, confidence float64, r *rand.Rand, seed uint64) Job {
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
	return Job{Request: q, At: at, family: f, luck: w.Noise.luck(seed, id, q.Epochs)}
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

// fastest is the least possible time of a request, in seconds: alone, with its
// fastest candidate, start-up included, without noise.
func (f *Family) fastest(q *schemas.JobRequest) float64 {
	least := math.Inf(1)
	for _, c := range candidates(q) {
		least = min(least, f.EpochSeconds.alone(c.batch, c.cpus))
	}
	return f.StartupSeconds + float64(q.Epochs)*least
}

// gapSeconds is the mean time between two submissions that makes the load.
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

// meanCoreSeconds is the mean over all jobs of the family, each candidate as
// likely as the next.
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

// candidate is a way to run a job.
type candidate struct{ batch, cpus uint32 }

// candidates of a request, in its own order.
func candidates(q *schemas.JobRequest) []candidate {
	all := make([]candidate, 0, len(q.CPUs)*len(q.BatchSizes))
	for _, cpus := range q.CPUs {
		for _, batch := range q.BatchSizes {
			all = append(all, candidate{uint32(batch), uint32(cpus)})
		}
	}
	return all
}

// offeredBy reports whether a request leaves the choice.
func (c candidate) offeredBy(
	q *schemas.JobRequest,
) bool {
	return slices.Contains(candidates(q), c)
}
