package sharing

import (
	"math/rand/v2"
	"strconv"
)

// PaperJobs returns the fixed schedule of three jobs.
func PaperJobs() []TrainingJob {
	return []TrainingJob{
		{Name: "first", Arrival: 0, Work: 240, FinalLoss: 0.1, Decay: 0.08},
		{Name: "second", Arrival: 40, Work: 120, FinalLoss: 0.1, Decay: 0.12},
		{Name: "third", Arrival: 80, Work: 30, FinalLoss: 0.05, Decay: 0.35},
	}
}

// RandomJobs returns n jobs that arrive over a time.
func RandomJobs(n int, overSeconds float64, seed uint64) []TrainingJob {
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]TrainingJob, n)
	for i := range jobs {
		arrival := overSeconds * random.Float64()
		work := []float64{20, 40, 80, 160}[random.IntN(4)]
		jobs[i] = TrainingJob{
			Name:      strconv.Itoa(i),
			Arrival:   arrival,
			Work:      work,
			FinalLoss: 0.1,
			Decay:     []float64{0.05, 0.08, 0.15, 0.35}[random.IntN(4)],
		}
		// Two more numbers are drawn, so that the schedules remain those of the published figures.
		random.Float64()
		random.NormFloat64()
	}
	return jobs
}
