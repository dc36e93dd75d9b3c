package simulate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// World is a cluster and its jobs. It has the laws and the noise, which rules must not see.
type World struct {
	Nodes []WorldNode `json:"nodes"`
	// Load is the ratio of busy cores if all jobs were accepted, ran without neighbours, and had
	// uniformly drawn batch sizes and CPUs; 0.01 to 4. Contention increases it.
	Load          float64  `json:"load"`
	Noise         Noise    `json:"noise"`
	SLO           SLORange `json:"slo"`
	SampleSeconds float64  `json:"sample_seconds"` // between two samples of a node, 1 to 20; after 30 s without a sample a node is unavailable
	WarmUp        WarmUp   `json:"warm_up"`
	Families      []Family `json:"families"`
}

// WorldNode is a node of a World.
type WorldNode struct {
	Name  string `json:"name"`
	Cores uint32 `json:"cores"` // logical processors
}

// Noise is unpredictable. Times are multiplied by the exponentials of two normal numbers with these
// standard deviations, one per run and one per epoch.
type Noise struct {
	RunRatio   float64 `json:"run_ratio"`   // 0 to 1
	EpochRatio float64 `json:"epoch_ratio"` // 0 to 1
	Accuracy   float64 `json:"accuracy"`    // standard deviation of a measured accuracy around the true one, 0 to 1
}

// SLORange is the range of a uniform distribution of SLOs, as multiples of the shortest time of the
// job: with its fastest candidate, without neighbours and noise.
type SLORange struct {
	LeastRatio float64 `json:"least_ratio"` // above 0
	MostRatio  float64 `json:"most_ratio"`
}

// WarmUp is the history before the scored submissions: a factorial design of all families, batch
// sizes and CPUs, with each of these numbers of concurrent jobs on a node. Neighbours are from the
// same design.
type WarmUp struct {
	JobsAtOnce []int `json:"jobs_at_once"` // numbers of concurrent jobs, 1 or more
}

// Family is a family of jobs with the same laws.
type Family struct {
	Model           string      `json:"model"`
	Share           float64     `json:"share"` // relative frequency of its submissions
	TrainingSamples uint64      `json:"training_samples"`
	Epochs          []int       `json:"epochs"`          // numbers of epochs, of which each job draws one
	BatchSizes      []int       `json:"batch_sizes"`     // candidate batch sizes of every job
	CPUs            [][]int     `json:"cpus"`            // lists of candidate CPUs, of which each job draws one
	StartupSeconds  float64     `json:"startup_seconds"` // from the start to the first epoch, without noise; neighbours do not change it
	EpochSeconds    TimeLaw     `json:"epoch_seconds"`
	Accuracy        AccuracyLaw `json:"accuracy"`
}

//go:embed world.json
var defaultWorld []byte

// DefaultWorld returns the world of the published figures.
func DefaultWorld() *World {
	w := &World{}
	if err := json.Unmarshal(defaultWorld, w); err != nil {
		panic(fmt.Sprintf("world.json: %v", err)) // A test reads the file.
	}
	return w
}

// cpuLevels returns all numbers of CPUs that jobs of the family may have.
func (f *Family) cpuLevels() []int {
	levels := slices.Concat(f.CPUs...)
	slices.Sort(levels)
	return slices.Compact(levels)
}

// TimeLaw is the true duration of an epoch in seconds: the exponential of a sum of terms. Each
// field is the coefficient of the term in its comment. b is the batch size, c the CPUs of the job,
// n the number of jobs on the node, and P the sum of their CPUs; n and P include the job.
type TimeLaw struct {
	Constant    float64 `json:"constant"`     // 1: the logarithm of seconds
	Batch       float64 `json:"batch"`        // ln(b / 64)
	CPUs        float64 `json:"cpus"`         // ln c
	InverseCPUs float64 `json:"inverse_cpus"` // 1 / c
	BatchCPUs   float64 `json:"batch_cpus"`   // ln(b / 64) · ln c
	Jobs        float64 `json:"jobs"`         // ln n
	Neighbours  float64 `json:"neighbours"`   // ln(1 + (P − c) / cores): the cost of the processes of neighbours
}

// alone returns the seconds of an epoch without neighbours.
func (l *TimeLaw) alone(batch, cpus uint32) float64 {
	b, c := math.Log(float64(batch)/64), math.Log(float64(cpus))
	return math.Exp(l.Constant + l.Batch*b + l.CPUs*c + l.InverseCPUs/float64(cpus) +
		l.BatchCPUs*b*c)
}

// contention returns the factor by which neighbours lengthen an epoch, 1 without neighbours. cpus
// are the CPUs of the job, processes the processes of all jobs on the node.
func (l *TimeLaw) contention(cpus uint32, jobs, processes int, cores uint32) float64 {
	if jobs == 1 {
		return 1
	}
	return math.Exp(l.Jobs*math.Log(float64(jobs)) +
		l.Neighbours*math.Log1p(float64(processes-int(cpus))/float64(cores)))
}

// AccuracyLaw is the true accuracy: 1 − exp(constant + iterations · ln k) after k iterations. So
// the accuracy depends on the number of iterations only, and a smaller batch size is more accurate
// after the same number of epochs.
type AccuracyLaw struct {
	Constant   float64 `json:"constant"`   // logarithm of the error after one iteration
	Iterations float64 `json:"iterations"` // below 0: slope of the logarithm of the error
}

// after returns the true accuracy after some epochs, 0 to 1.
func (l *AccuracyLaw) after(samples uint64, batch, epochs uint32) float64 {
	iterations := float64(epochs) * float64(samples) / float64(batch)
	return 1 - min(1, math.Exp(l.Constant+l.Iterations*math.Log(iterations)))
}
