package trainer

import "cmp"

// Limits bound a Past. A zero field means the default given after the semicolon.
//
// The defaults keep twenty times the examples of one fit (Options.Examples), so that a fit finds
// the newest runs of every configuration, in about 100 MB.
type Limits struct {
	SettingRuns int `name:"configuration-runs" help:"Maximum number of ended runs kept for each configuration: model, dataset, batch size, CPUs, load and node type." default:"1000" env:"COURIER_CONFIGURATION_RUNS"`
	Runs        int `name:"history-runs" help:"Maximum number of ended runs kept in memory. Beyond it, the trainer drops the oldest runs of the configurations with the most runs." default:"50000" env:"COURIER_HISTORY_RUNS"`
	Epochs      int `name:"history-epochs" help:"Maximum number of epochs of ended runs kept in memory." default:"200000" env:"COURIER_HISTORY_EPOCHS"`
	RunEpochs   int `kong:"-"` // epochs of one run; 1,000
	Spans       int `kong:"-"` // number of later ended runs for which a run stays a neighbour; 20,000
	OpenRuns    int `kong:"-"` // runs that have not ended; 50,000
}

// crowdedRunEpochs is the minimum of Limits.runEpochs.
const crowdedRunEpochs = 64

func (l Limits) withDefaults() Limits {
	l.SettingRuns = cmp.Or(l.SettingRuns, 1_000)
	l.Runs = cmp.Or(l.Runs, 50_000)
	l.Epochs = cmp.Or(l.Epochs, 200_000)
	l.RunEpochs = cmp.Or(l.RunEpochs, 1_000)
	l.Spans = cmp.Or(l.Spans, 20_000)
	l.OpenRuns = cmp.Or(l.OpenRuns, 50_000)
	return l
}

// runEpochs returns the maximum number of epochs of one run while a number of runs is open: all
// open runs together hold about Epochs, each at least crowdedRunEpochs.
func (l *Limits) runEpochs(open int) int {
	return min(l.RunEpochs, max(crowdedRunEpochs, l.Epochs/max(open, 1)))
}
