package advisortest

import (
	"context"
	"sync"

	"courier/schemas"
)

// TwoCores is the node of the tests of elastic jobs.
var TwoCores = schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9}

// SharedRuns are the measurements of a node on which jobs share the CPUs.
type SharedRuns struct {
	Node         schemas.Hardware
	CPUs         []uint32  // of the measured job
	Others       []float64 // processes of other jobs
	MaxProcesses float64
}

// seconds is the time of an epoch: 1.5 s with the first number of CPUs, inversely proportional to the
// CPUs of the job, and longer if more processes run than the node has cores.
func (s *SharedRuns) seconds(cpus, processes float64) float64 {
	overload := max(1, processes/float64(s.Node.Cores))
	return 1.5 * float64(s.CPUs[0]) / cpus * overload
}

// FitShared fits regressors of epoch times and accuracies to the runs on TwoCores.
var FitShared = fitSharedUpTo(6)

// FitWithoutOverload is FitShared of measurements with at most one process for each CPU.
var FitWithoutOverload = fitSharedUpTo(2)

func fitSharedUpTo(maxProcesses float64) Fitting {
	s := SharedRuns{TwoCores, []uint32{1, 2}, []float64{0, 1, 2, 3, 4}, maxProcesses}
	return s.Fit()
}

// Fit returns a function that fits regressors to the runs.
func (s *SharedRuns) Fit() Fitting {
	n := Node{
		Hardware: s.Node, Model: Model, BatchSize: 16, CPUs: s.CPUs, Others: s.Others,
		MaxProcesses: s.MaxProcesses, EpochSeconds: s.seconds, StartupSeconds: TrueStartup,
		Accuracy: func(epochs float64) float64 { return TrueAccuracy(16, epochs) },
	}
	return sync.OnceValues(func() (map[string]Files, error) { return n.Fit(context.Background()) })
}
