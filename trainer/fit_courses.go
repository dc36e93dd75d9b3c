package trainer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"courier/regress/evidence"
	"courier/schemas"
)

// course is a run of a job with all of its epochs, whatever its configurations were.
type course struct {
	evidence.Run
	configurations []evidence.Configuration           // of its examples
	lasted         map[evidence.Configuration]float64 // seconds
}

// evidenceRuns groups the examples of a target into runs, the unit of package evidence. A run whose load,
// CPUs or batch size changed is a run of each configuration that lasted long enough, with all of its epochs:
// those under other configurations are multiplied by the usual ratio. Its parts alone would compare the last
// epochs under one configuration with the first ones under another.
func evidenceRuns(target string, examples []Example, foreign schemas.ForeignColumns) (runs []evidence.Run) {
	type key struct{ run, model, dataset, nodeType string }
	numbers := map[key]int{}
	var courses []course
	for i := range examples {
		x := &examples[i]
		c := configurationOf(target, x, foreign)
		k := key{jobRun(x.Job, x.Run), c.Model, c.Dataset, c.NodeType}
		if x.Job == "" {
			k.run = fmt.Sprint("example ", i)
		}
		n := indexOf(numbers, k)
		if n == len(courses) {
			courses = append(courses, course{
				Run:    evidence.Run{Job: k.run, StartedAt: x.begin(), EndedAt: x.EndedAt, Node: firstOf(x.Nodes)},
				lasted: map[evidence.Configuration]float64{},
			})
		}
		r := &courses[n]
		r.configurations = append(r.configurations, c)
		r.lasted[c] += x.Seconds
		addExample(target, &r.Run, x)
	}
	effects := effectsOf(courses)
	for i := range courses {
		for _, c := range courses[i].usual() {
			r := courses[i].under(c, effects)
			r.ID = fmt.Sprint(r.Job, " ", len(runs))
			runs = append(runs, r)
		}
	}
	return runs
}

// indexOf returns the number of a key, in the order in which keys were first asked for.
func indexOf[K comparable](numbers map[K]int, k K) int {
	n, found := numbers[k]
	if !found {
		n = len(numbers)
		numbers[k] = n
	}
	return n
}

// usualShare is the share of the time of a run from which it is a run of a configuration.
const usualShare = 0.25

// usual returns the configurations that lasted long enough, and always the longest one.
func (c *course) usual() []evidence.Configuration {
	all := slices.SortedFunc(maps.Keys(c.lasted), func(a, b evidence.Configuration) int {
		return cmp.Or(cmp.Compare(c.lasted[b], c.lasted[a]), cmp.Compare(slices.Index(c.configurations, a),
			slices.Index(c.configurations, b)))
	})
	sum := 0.0
	for _, of := range all {
		sum += c.lasted[of]
	}
	isShort := func(of evidence.Configuration) bool { return c.lasted[of] < usualShare*sum }
	return append(all[:1], slices.DeleteFunc(all[1:], isShort)...)
}

// under returns the run as if it had always been under a configuration.
func (c *course) under(to evidence.Configuration, effects map[evidence.Configuration]float64) evidence.Run {
	r := c.Run
	r.Configuration, r.Epochs = to, slices.Clone(r.Epochs)
	for i := range r.Epochs {
		r.Epochs[i].Seconds *= math.Exp(effects[to] - effects[c.configurations[i]])
	}
	return r
}

// effectRounds is the number of rounds after which effects hardly change any more.
const effectRounds = 20

// effectsOf returns the effects of configurations on the log seconds of an epoch, beside those of its number
// and its run. Each effect is the median of what the others leave, in turns (backfitting: Hastie, Tibshirani
// 1990, chapter 4). That of a number is drawn to zero: what may be due to both is due to the configuration.
func effectsOf(courses []course) map[evidence.Configuration]float64 {
	type epochNumber struct {
		model, dataset string
		number         int
	}
	type observation struct {
		levels [3]int // of the configuration, the number and the run
		y      float64
	}
	var all []observation
	configurations, numbers := map[evidence.Configuration]int{}, map[epochNumber]int{}
	for run := range courses {
		for i, e := range courses[run].Epochs {
			if c := courses[run].configurations[i]; e.Seconds > 0 {
				number := indexOf(numbers, epochNumber{c.Model, c.Dataset, e.Number})
				all = append(all, observation{
					[3]int{indexOf(configurations, c), number, run}, math.Log(e.Seconds / float64(max(1, e.Count))),
				})
			}
		}
	}
	effects := [3][]float64{
		make([]float64, len(configurations)), make([]float64, len(numbers)), make([]float64, len(courses)),
	}
	const number, weight = 1, 0.25 // of the effect zero, in epochs
	for range effectRounds {
		for term, of := range effects {
			left := make([][]float64, len(of))
			for _, o := range all {
				y := o.y + of[o.levels[term]]
				for t, l := range o.levels {
					y -= effects[t][l]
				}
				left[o.levels[term]] = append(left[o.levels[term]], y)
			}
			for l, y := range left {
				if len(y) == 0 {
					continue
				}
				slices.Sort(y)
				n := len(y)
				if of[l] = (y[(n-1)/2] + y[n/2]) / 2; term == number {
					of[l] *= float64(n) / (float64(n) + weight)
				}
			}
		}
	}
	result := map[evidence.Configuration]float64{}
	for c, l := range configurations {
		result[c] = effects[0][l]
	}
	return result
}
