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
	n := 1
	for n < len(all) && c.lasted[all[n]] >= usualShare*sum {
		n++
	}
	return all[:n]
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

// timedEpoch is an epoch of a run whose configurations may have changed.
type timedEpoch struct {
	levels     [effectTerms]int // the numbers of its configuration, of its place in the run, and of its run
	logSeconds float64
}

// The terms of the log seconds of an epoch.
const (
	termConfiguration = iota
	termPlace
	termRun
	effectTerms
)

// effectsOf returns the effects of configurations on the log seconds of an epoch, by the runs that changed
// theirs; nil if none did.
func effectsOf(courses []course) map[evidence.Configuration]float64 {
	if !slices.ContainsFunc(courses, func(c course) bool { return len(c.lasted) > 1 }) {
		return nil
	}
	type place struct {
		model, dataset string
		epoch          int
	}
	var epochs []timedEpoch
	configurations, places := map[evidence.Configuration]int{}, map[place]int{}
	for run := range courses {
		for i, e := range courses[run].Epochs {
			if c := courses[run].configurations[i]; e.Seconds > 0 {
				epochs = append(epochs, timedEpoch{
					levels: [effectTerms]int{
						termConfiguration: indexOf(configurations, c),
						termPlace:         indexOf(places, place{c.Model, c.Dataset, e.Number}),
						termRun:           run,
					},
					logSeconds: math.Log(e.Seconds / float64(max(1, e.Count))),
				})
			}
		}
	}
	effects := backfitted(epochs, [effectTerms]int{len(configurations), len(places), len(courses)})
	all := map[evidence.Configuration]float64{}
	for c, level := range configurations {
		all[c] = effects[termConfiguration][level]
	}
	return all
}

// effectRounds is the number of rounds after which effects hardly change any more.
const effectRounds = 20

// placeWeight is the weight of no effect for that of a place, in epochs. It makes a change that may be due to the
// place or to the configuration one of the configuration.
const placeWeight = 0.25

// backfitted returns the effects of each level of each term, of which there are some numbers: in turns, the
// medians of what the other terms leave (backfitting: Hastie, Tibshirani 1990, chapter 4).
func backfitted(epochs []timedEpoch, numbers [effectTerms]int) (effects [effectTerms][]float64) {
	for term, n := range numbers {
		effects[term] = make([]float64, n)
	}
	for range effectRounds {
		for term, of := range effects {
			for level, rest := range restsOf(epochs, effects, term) {
				if len(rest) > 0 {
					of[level] = evidence.Median(rest)
				}
				if n := float64(len(rest)); term == termPlace {
					of[level] *= n / (n + placeWeight)
				}
			}
		}
	}
	return effects
}

// restsOf returns what the other terms leave of the log seconds of epochs, by the levels of a term.
func restsOf(epochs []timedEpoch, effects [effectTerms][]float64, term int) [][]float64 {
	rests := make([][]float64, len(effects[term]))
	for _, e := range epochs {
		rest := e.logSeconds
		for other, level := range e.levels {
			if other != term {
				rest -= effects[other][level]
			}
		}
		rests[e.levels[term]] = append(rests[e.levels[term]], rest)
	}
	return rests
}
