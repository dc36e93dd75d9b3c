package advisortest

import "courier/schemas"

// FitShared returns a function that fits regressors to the runs on a node whose jobs share the CPUs. cpus
// are those of the measured job, and others the processes of other jobs. An epoch takes 1.5 s with the first
// number of CPUs, inversely proportional to the CPUs of the job, and longer if more processes run than the
// node has cores.
func FitShared(node schemas.Hardware, cpus []uint32, others []float64, maxProcesses float64) Fitting {
	n := Node{
		Hardware:     node,
		Model:        Model,
		BatchSize:    16,
		CPUs:         cpus,
		Others:       others,
		MaxProcesses: maxProcesses,
		EpochSeconds: func(own, processes float64) float64 {
			return 1.5 * float64(cpus[0]) / own * max(1, processes/float64(node.Cores))
		},
		StartupSeconds: TrueStartup,
		Accuracy:       func(epochs float64) float64 { return TrueAccuracy(16, epochs) },
	}
	return FitOnce(n.runs)
}

// FitTwoCores fits regressors to the runs on Small.
var FitTwoCores = FitShared(Small, []uint32{1, 2}, []float64{0, 1, 2, 3, 4}, 6)
