package flowcon

import (
	"fmt"
	"io"
	"text/tabwriter"

	"courier/policy/quality"
)

// Figure compares a simulated figure with a published one.
type Figure struct {
	Name    string  `json:"name"`
	Target  float64 `json:"target"`  // published, or found by the prototype of the design note
	Reached float64 `json:"reached"` // middle of Low and High
	Low     float64 `json:"low"`     // of the thresholds of the variant
	High    float64 `json:"high"`
	Variant string  `json:"variant"`
	IsMet   bool    `json:"met"` // at least as good as the target
}

// Figures are the figures of a system.
type Figures struct {
	Figures []Figure `json:"figures"`
}

// publishedRatio is the reduction of the completion time of the last job that the abstract of
// FlowCon reports, with a makespan that is not longer.
const publishedRatio = 0.4206

// sharingVariant is a rule with the thresholds for which it is simulated.
type sharingVariant struct {
	name       string
	thresholds []float64
	interval   float64
	options    quality.Options
}

var variants = []sharingVariant{
	{"as published: caps, beta 1 + 1/n", []float64{0.005, 0.01, 0.05}, 20, quality.Options{IsPublished: true}},
	{"caps, beta 2", []float64{0.005, 0.01, 0.05}, 20, quality.Options{IsPublished: true, Floor: 2}},
	{"weights, beta 2, losses every 10 s", []float64{0.005, 0.01}, 10, quality.Options{Floor: 2}},
	{"weights, beta 4, losses every 10 s", []float64{0.005, 0.01}, 10, quality.Options{Floor: 4}},
	{"weights, beta 2, losses every 5 s", []float64{0.005, 0.01}, 5, quality.Options{Floor: 2}},
}

// Reproduce simulates the fixed schedule of three jobs by each variant. A figure is the reduction of
// a time against fair sharing as a ratio, negative if the time is longer.
func Reproduce() *Figures {
	jobs := PaperJobs()
	fair, fairMakespan := Simulate(jobs, Sharing{IsFair: true})
	f := &Figures{}
	for _, v := range variants {
		reductions := map[string][]float64{}
		for _, threshold := range v.thresholds {
			o := v.options
			o.Threshold = threshold
			seconds, makespan := Simulate(jobs, Sharing{Quality: o, Interval: v.interval})
			for _, name := range []string{"third", "second"} {
				reductions[name] = append(reductions[name], 1-seconds[name]/fair[name])
			}
			reductions["makespan"] = append(reductions["makespan"], 1-makespan/fairMakespan)
		}
		f.add("completion time of the third job", publishedRatio, v.name, reductions["third"])
		f.add("completion time of the second job", 0, v.name, reductions["second"])
		f.add("makespan", 0, v.name, reductions["makespan"])
	}
	return f
}

// tolerance is the rounding of times to ticks, as a ratio.
const tolerance = 0.001

func (f *Figures) add(name string, target float64, variant string, reached []float64) {
	x := Figure{Name: name, Target: target, Variant: variant, Low: reached[0], High: reached[0]}
	for _, v := range reached {
		x.Low, x.High = min(x.Low, v), max(x.High, v)
	}
	x.Reached = (x.Low + x.High) / 2
	x.IsMet = x.Low >= target-tolerance
	f.Figures = append(f.Figures, x)
}

// change returns a reduction as a change in percent.
func change(reduction float64) string {
	if text := fmt.Sprintf("%+.1f", -100*reduction); text != "-0.0" && text != "+0.0" {
		return text
	}
	return "0"
}

// WriteText writes the figures as a table.
func (f *Figures) WriteText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "variant\tfigure\ttarget\treached\tmet\t")
	for _, x := range f.Figures {
		isMet := "no"
		if x.IsMet {
			isMet = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s %%\t%s to %s %%\t%s\t\n", x.Variant, x.Name,
			change(x.Target), change(x.High), change(x.Low), isMet)
	}
	return t.Flush()
}
