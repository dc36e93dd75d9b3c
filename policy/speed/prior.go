package speed

import (
	"cmp"
	"math"
	"slices"
)

// FinishedJob is what a job that ended has shown.
type FinishedJob struct {
	Facts        Facts
	Coefficients Coefficients
	Knees        map[float64]float64 // probability by number of cores that a worker can use
}

// Prior is what other jobs suggest about the coefficients of a job. Nil suggests nothing.
type Prior struct {
	mean, deviation Coefficients
	knees           map[float64]float64 // sum of the probabilities in these jobs
	jobs            float64
}

const nearestJobs = 10

// Nearest returns the prior of a job: from finished jobs with the same model, otherwise from those with
// the most similar number of bytes. Jobs with servers are not compared with jobs without servers.
func Nearest(finished []FinishedJob, f Facts) *Prior {
	var near []FinishedJob
	for i := range finished {
		if j := &finished[i]; j.Facts.HasServers == f.HasServers {
			near = append(near, *j)
		}
	}
	if len(near) == 0 {
		return nil
	}
	distance := func(j *FinishedJob) float64 {
		if f.Model != "" && j.Facts.Model == f.Model {
			return -1
		}
		return math.Abs(math.Log(j.Facts.ModelBytes / f.ModelBytes))
	}
	slices.Reverse(near) // of equal distances, the latest jobs
	slices.SortStableFunc(near, func(a, b FinishedJob) int {
		return cmp.Compare(distance(&a), distance(&b))
	})
	return newPrior(near[:min(len(near), nearestJobs)])
}

func newPrior(jobs []FinishedJob) *Prior {
	p := &Prior{knees: map[float64]float64{}, jobs: float64(len(jobs))}
	for i := range p.mean {
		var sum, squares float64
		for j := range jobs {
			c := jobs[j].Coefficients[i]
			sum += c
			squares += c * c
		}
		p.mean[i] = sum / p.jobs
		variance := max(0, squares/p.jobs-p.mean[i]*p.mean[i])
		// A few jobs say little about the spread: as much as one job as far away as the mean.
		p.deviation[i] = math.Sqrt(variance + p.mean[i]*p.mean[i]/p.jobs)
	}
	for j := range jobs {
		for _, knee := range knees {
			p.knees[knee] += jobs[j].Knees[knee]
		}
	}
	return p
}

// probability returns the weight of a knee: each is as likely as any other before the first job.
func (p *Prior) probability(knee float64) float64 {
	even := 1 / float64(len(knees))
	if p == nil {
		return even
	}
	return (1 + p.knees[knee]) / (float64(len(knees)) + p.jobs)
}

// spread returns the mean and the standard deviation of each coefficient. At most, each term may take
// the whole step of the first shape. Without jobs, fixed and coordinating terms may take what the busy
// times of all resources leave of it.
func (p *Prior) spread(f *Facts, first *ShapeTime) (mean, deviation Coefficients) {
	t := f.termsOf(&first.Shape, math.Inf(1))
	for i := range mean {
		most := first.StepSeconds
		if p == nil && (i == termFixed || i == termPerWorker || i == termPerServer) {
			most = first.restSeconds()
		}
		deviation[i] = most / max(t[i], 1e-9)
		if t[i] <= 0 {
			deviation[i] = most
		}
		if p != nil && p.mean[i] <= deviation[i] {
			mean[i] = p.mean[i]
			deviation[i] = min(deviation[i], max(p.deviation[i], 0.03*deviation[i]))
		}
	}
	return mean, deviation
}

// restSeconds returns the part of a step in which no resource is busy. It is at least the error of
// the telemetry. Fixed and coordinating time cannot be longer, because no term is negative.
func (s *ShapeTime) restSeconds() float64 {
	compute := s.ComputeCoreSeconds / float64(s.Shape.WorkerCores)
	rest := s.StepSeconds - compute - s.UpdateSeconds - s.TransferSeconds
	return max(rest, telemetryNoiseRatio*s.StepSeconds)
}
