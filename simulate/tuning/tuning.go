// Package tuning compares per-stage with static resources for a tuning by successive halving on
// serverless functions, with the cost model of λDNN (Xu et al., IEEE Transactions on Computers 2022)
// and the planner of policy/cost.
package tuning

import (
	"fmt"

	"courier/policy/cost"
	"courier/simulate/figures"
)

// Prices and rates of the functions.
const (
	pricePerGBSecond = 1.66667e-5 // US dollars, AWS Lambda
	gigabytesPerCore = 1.77
	storageRate      = 60.0   // MB/s of each function
	serverRate       = 1200.0 // MB/s of the parameter server, shared
	functionRate     = 70.0   // MB/s of each function to the server
)

// Network is a network that is tuned.
type Network struct {
	Name        string
	DataMB      float64 // read once per epoch, divided among the functions
	WorkSeconds float64 // seconds of one core per iteration
	GradientMB  float64 // exchanged in each iteration
	Iterations  float64 // per epoch
}

// Networks returns the three networks of the simulation.
func Networks() []Network {
	return []Network{
		{"linear", 8000, 40, 0.01, 5},
		{"convolutional", 200, 12, 13, 40},
		{"large convolutional", 200, 60, 97, 40},
	}
}

// Options returns the time and the cost of an epoch for 1 to 128 functions of 0.5 to 10 GB.
func (n *Network) Options() (options []cost.TrialOption) {
	for functions := 1.0; functions <= 128; functions *= 2 {
		for memory := 0.5; memory <= 10; memory += 0.5 {
			load := n.DataMB / (functions * storageRate)
			compute := n.WorkSeconds / (functions * memory / gigabytesPerCore)
			exchange := 2 * n.GradientMB / min(functionRate, serverRate/functions)
			seconds := load + n.Iterations*(compute+exchange)
			options = append(options, cost.TrialOption{
				Name:    fmt.Sprintf("%g functions of %g GB", functions, memory),
				Seconds: seconds,
				Cost:    functions * memory * pricePerGBSecond * seconds,
			})
		}
	}
	return options
}

// Published reductions of time and cost against static resources (Wu et al., IPDPS 2023, abstract).
const (
	publishedTime = 0.63
	publishedCost = 0.41
)

// Reproduce plans tunings of different sizes under budgets, which are multiples of the smallest one.
func Reproduce() (*figures.Comparisons, error) {
	f := &figures.Comparisons{}
	for _, trials := range []int{64, 1024, 16384} {
		for _, budget := range []float64{1.02, 1.1, 2, 4} {
			times, costs := []float64{}, []float64{}
			for _, n := range Networks() {
				for _, eta := range []int{2, 3} {
					time, saved, err := reductions(&n, cost.Halving(trials, eta, 2), budget)
					if err != nil {
						return nil, err
					}
					times, costs = append(times, time), append(costs, saved)
				}
			}
			variant := fmt.Sprintf("%d trials, budget %g of the smallest", trials, budget)
			f.Add("tuning time at equal budget", publishedTime, variant, times, true)
			f.Add("tuning cost at equal time", publishedCost, variant, costs, true)
		}
	}
	return f, nil
}

// reductions returns the reduction of the time at the budget of the best static plan, and of the
// cost at its time.
func reductions(n *Network, stages []cost.Stage, budget float64) (seconds, dollars float64, err error) {
	options := n.Options()
	front := cost.Front(options)
	smallest := cost.PlanOf(front, stages, make([]int, len(stages)))
	static, ok := cost.Static(options, stages, budget*smallest.Cost)
	if !ok {
		return 0, 0, fmt.Errorf("%s: no option keeps %g of the smallest budget", n.Name, budget)
	}
	staged, err := cost.FastestWithin(front, stages, budget*smallest.Cost)
	if err != nil {
		return 0, 0, err
	}
	cheapest, err := cost.CheapestWithin(front, stages, static.Seconds)
	if err != nil {
		return 0, 0, err
	}
	return 1 - staged.Seconds/static.Seconds, 1 - cheapest.Cost/static.Cost, nil
}
