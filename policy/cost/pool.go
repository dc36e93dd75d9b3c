package cost

// PoolSpeed is the speed of a trial with a number of cores.
type PoolSpeed struct {
	Cores        int
	EpochSeconds float64
	StartSeconds float64 // of each start of the command, beside its epochs
}

// Waves returns how often a pool of cores must be filled until each trial has run once; 0 if a trial
// does not fit into the pool. Where the cores of a trial divide the pool, it is
// ceil(trials cores/pool).
func Waves(trials, cores, pool int) int {
	if cores < 1 || cores > pool {
		return 0
	}
	atOnce := pool / cores
	return (trials + atOnce - 1) / atOnce
}

// PoolOptions returns the options of a stage on a pool of cores, in the order of the speeds, with the
// time of all waves and the cost of all trials in core-seconds. Speeds that do not fit into the pool are
// left out.
func (s Stage) PoolOptions(speeds []PoolSpeed, pool int) (options []TrialOption) {
	for _, v := range speeds {
		waves := Waves(s.Trials, v.Cores, pool)
		if waves == 0 && s.Trials > 0 {
			continue
		}
		trial := v.StartSeconds + float64(s.Epochs)*v.EpochSeconds
		options = append(options, TrialOption{
			Cores:   v.Cores,
			Seconds: float64(waves) * trial,
			Cost:    float64(s.Trials*v.Cores) * trial,
		})
	}
	return options
}

// PoolFronts returns the front of each stage on a pool of cores.
func PoolFronts(stages []Stage, speeds []PoolSpeed, pool int) (fronts StageFronts) {
	for _, s := range stages {
		fronts = append(fronts, Front(s.PoolOptions(speeds, pool)))
	}
	return fronts
}
