package figures

import (
	"fmt"

	"courier/tune/halving"
)

// Prices and rates of the functions.
const (
	pricePerGBSecond = 1.66667e-5 // US dollars, AWS Lambda
	gigabytesPerCore = 1.77
	storageRate      = 60.0   // MB/s of each function
	serverRate       = 1200.0 // MB/s of the parameter server, shared
	functionRate     = 70.0   // MB/s of each function to the server
)

// tunedNetwork is a network that is tuned.
type tunedNetwork struct {
	name        string
	dataMB      float64 // read once per epoch, divided among the functions
	workSeconds float64 // seconds of one core per iteration
	gradientMB  float64 // exchanged in each iteration
	iterations  float64 // per epoch
}

var tunedNetworks = []tunedNetwork{
	{"linear", 8000, 40, 0.01, 5},
	{"convolutional", 200, 12, 13, 40},
	{"large convolutional", 200, 60, 97, 40},
}

// options returns the time and the cost of an epoch for 1 to 128 functions of 0.5 to 10 GB, by the cost
// model of λDNN (Xu et al., IEEE Transactions on Computers 2022).
func (n *tunedNetwork) options() (options []halving.TrialOption) {
	for functions := 1.0; functions <= 128; functions *= 2 {
		for memory := 0.5; memory <= 10; memory += 0.5 {
			load := n.dataMB / (functions * storageRate)
			compute := n.workSeconds / (functions * memory / gigabytesPerCore)
			exchange := 2 * n.gradientMB / min(functionRate, serverRate/functions)
			seconds := load + n.iterations*(compute+exchange)
			dollars := functions * memory * pricePerGBSecond * seconds
			options = append(options, halving.TrialOption{Seconds: seconds, Cost: dollars})
		}
	}
	return options
}

// Published reductions of time and cost of tunings against static resources (Wu et al., IPDPS 2023,
// abstract).
const (
	publishedTime = 0.63
	publishedCost = 0.41
)

// tuningCase is a number of trials and a budget, as a multiple of the smallest one, with the
// reductions that section 4.5 of the design page resource-policies reports. The target of each
// network and eta is the weaker end of its range.
type tuningCase struct {
	trials        int
	budget        float64
	seconds, cost target
}

var tuningCases = []tuningCase{
	{64, 1.02, target{}, target{}},
	{64, 1.1, reported(0.25), target{}},
	{64, 2, reported(0.11), reported(0.12)},
	{64, 4, target{}, target{}},
	{1024, 1.02, reported(0.37), target{}},
	{1024, 1.1, reported(0.37), target{}},
	{1024, 2, reported(0.17), reported(0.22)},
	{1024, 4, target{}, target{}},
	{16384, 1.02, reported(0.48), target{}},
	{16384, 1.1, reported(0.48), target{}},
	{16384, 2, reported(0.20), reported(0.28)},
	{16384, 4, target{}, reported(0.35)},
}

// fewTrials and tightBudget bound where the published figures are compared: the time with a tight
// budget and many trials, the cost with a wide budget and many trials.
const (
	fewTrials   = 64
	tightBudget = 1.1
)

// CEScaling compares the resources that tune/halving plans for each stage of a tuning by successive
// halving on serverless functions with one option for all stages. Tunings of different sizes have
// budgets, and each network has eta 2 and 3.
func CEScaling() (*Comparisons, error) {
	f := &Comparisons{}
	for i := range tuningCases {
		if err := tuningCases[i].add(f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (c *tuningCase) add(f *Comparisons) error {
	group := fmt.Sprintf("%d trials, budget %g of the smallest", c.trials, c.budget)
	for _, n := range tunedNetworks {
		for _, eta := range []int{2, 3} {
			seconds, dollars, err := stagedReductions(&n, halving.Stages(c.trials, eta, 2), c.budget)
			if err != nil {
				return err
			}
			f.begin(fmt.Sprintf("%s, %s network, eta %d", group, n.name, eta), group)
			f.add(kindReduction, "tuning time at equal budget", c.seconds, seconds)
			f.add(kindReduction, "tuning cost at equal time", c.cost, dollars)
			switch {
			case c.trials == fewTrials:
			case c.budget <= tightBudget:
				f.add(kindReduction, "tuning time at equal budget, published", bar(publishedTime), seconds)
			default:
				f.add(kindReduction, "tuning cost at equal time, published", bar(publishedCost), dollars)
			}
		}
	}
	return nil
}

// stagedReductions returns the reduction of the time at the budget of the best static plan, and of the
// cost at its time.
func stagedReductions(n *tunedNetwork, stages []halving.Stage, budget float64) (seconds, dollars float64, err error) {
	options := n.options()
	fronts := halving.FrontsOf(halving.Front(options), stages)
	budget *= fronts.Cheapest().Cost
	static, ok := halving.FrontsOf(options, stages).Static(budget)
	if !ok {
		return 0, 0, fmt.Errorf("%s: no option keeps the budget of $%g", n.name, budget)
	}
	staged, err := fronts.FastestWithin(budget)
	if err != nil {
		return 0, 0, err
	}
	cheapest, err := fronts.CheapestWithin(static.Seconds)
	if err != nil {
		return 0, 0, err
	}
	return 1 - staged.Seconds/static.Seconds, 1 - cheapest.Cost/static.Cost, nil
}
