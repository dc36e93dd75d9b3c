package simulate

import "math"

// TimeLaw gives the true seconds of an epoch: the exponential of a sum of the
// terms below, each a coefficient times what its comment says. b is the batch
// size, c the CPUs of the job, n the jobs on the node and P their CPUs, both
// with the job itself.
type TimeLaw struct {
	Constant    float64 `json:"constant"`     // 1: the logarithm of seconds
	Batch       float64 `json:"batch"`        // ln(b / 64)
	CPUs        float64 `json:"cpus"`         // ln c
	InverseCPUs float64 `json:"inverse_cpus"` // 1 / c
	BatchCPUs   float64 `json:"batch_cpus"`   // ln(b / 64) · ln c
	Jobs        float64 `json:"jobs"`         // ln n
	Neighbours  float64 `json:"neighbours"`   // ln(1 + (P − c) / cores): what the others' processes cost
}

// alone is the law for a job that has its node for itself.
func (l *TimeLaw) alone(batch, cpus uint32) float64 {
	b, c := math.Log(float64(batch)/64), math.Log(float64(cpus))
	return math.Exp(l.Constant + l.Batch*b + l.CPUs*c + l.InverseCPUs/float64(cpus) +
		l.BatchCPUs*b*c)
}

// contention is by what the neighbours multiply the seconds of an epoch; 1
// without any. cpus are the job's, processes those of all jobs on the node.
func (l *TimeLaw) contention(cpus uint32, jobs, processes int, cores uint32) float64 {
	if jobs == 1 {
		return 1
	}
	return math.Exp(l.Jobs*math.Log(float64(jobs)) +
		l.Neighbours*math.Log1p(float64(processes-int(cpus))/float64(cores)))
}

// AccuracyLaw gives the true accuracy after some epochs: 1 − exp(constant +
// iterations · ln k), where k are the iterations so far. So a smaller batch is
// more accurate after as many epochs, and as accurate after as many iterations.
type AccuracyLaw struct {
	Constant   float64 `json:"constant"`   // the logarithm of the error after one iteration
	Iterations float64 `json:"iterations"` // below 0: how fast the error falls
}

// after is the true accuracy after some epochs, 0 to 1.
func (l *AccuracyLaw) after(samples uint64, batch, epochs uint32) float64 {
	iterations := float64(epochs) * float64(samples) / float64(batch)
	return 1 - min(1, math.Exp(l.Constant+l.Iterations*math.Log(iterations)))
}
