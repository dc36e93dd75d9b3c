package evidence_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"courier/regress/evidence"
)

const confidence = 0.95

// adviceQuestion is one request. It has epochs or most, an SLO except for "fastest", and a target
// accuracy for "target" and "fastest".
type adviceQuestion struct {
	kind    string
	dataset string
	batches []int
	epochs  int
	most    int
	slo     float64
	target  float64
	best    float64
	choice  option
	promise bool
	options []option // the best of each batch size
}

// option is a batch size and a number of epochs with their predictions.
type option struct {
	batch, epochs int
	seconds       float64
	probability   float64 // of keeping the SLO and reaching the target
	time          evidence.Time
	accuracy      evidence.Accuracy
	value         float64 // probability times mean accuracy
	promised      bool
}

func logUniform(random *rand.Rand, low, high float64) float64 {
	return math.Exp(math.Log(low) + random.Float64()*(math.Log(high)-math.Log(low)))
}

func uniform(random *rand.Rand, low, high int) int { return low + random.IntN(high-low+1) }

// questions draws the requests of each dataset.
func (w *zeusSplit) questions(repetition uint64) []*adviceQuestion {
	random := rand.New(rand.NewPCG(repetition, 3))
	var all []*adviceQuestion
	for _, d := range w.datasets {
		for _, of := range []struct {
			kind  string
			count int
		}{{"fixed", 26}, {"free", 10}, {"target", 10}, {"fastest", 6}, {"single", 10}} {
			for range of.count {
				all = append(all, w.question(random, d, of.kind))
			}
		}
	}
	return all
}

func (w *zeusSplit) question(random *rand.Rand, d, kind string) *adviceQuestion {
	low, high := w.known(d)
	q := &adviceQuestion{kind: kind, dataset: d, batches: w.batches[d]}
	extremes := func(epochs int) (least, most float64) {
		least = math.Inf(1)
		for _, b := range w.batches[d] {
			t := w.time(d, b, epochs)
			least, most = min(least, t), max(most, t)
		}
		return least, most
	}
	switch kind {
	case "fixed":
		q.epochs = uniform(random, low, high)
		least, most := extremes(q.epochs)
		q.slo = logUniform(random, least, most)
		return q
	case "single":
		b := w.batches[d][random.IntN(len(w.batches[d]))]
		q.batches, q.epochs = []int{b}, uniform(random, low, high)
		q.slo = w.mean(d, b) * float64(q.epochs) * (0.85 + 0.45*random.Float64())
		return q
	}
	q.most = uniform(random, max(low, high/2), max(high, low+1))
	least, most := extremes(q.most)
	if kind == "free" {
		q.slo = logUniform(random, least/2, most)
		return q
	}
	steps := w.reachable(d, q.most)
	q.target = steps[random.IntN(len(steps))]
	q.best = math.Inf(1)
	for _, b := range w.batches[d] {
		if first := w.truth[zeusSetting{d, b}].first(q.target); first <= q.most {
			q.best = min(q.best, w.time(d, b, first))
		}
	}
	if kind == "target" {
		q.slo = logUniform(random, q.best*1.1, most*1.1)
	}
	return q
}

// reachable returns the highest accuracies of the history that two true runs or more reach.
func (w *zeusSplit) reachable(d string, epochs int) []float64 {
	var steps []float64
	for _, b := range w.batches[d] {
		for _, r := range w.history[zeusSetting{d, b}] {
			for _, s := range r.steps {
				n := 0
				for _, c := range w.batches[d] {
					if w.accuracy(d, c, epochs) >= s.accuracy {
						n++
					}
				}
				if n >= 2 {
					steps = append(steps, s.accuracy)
				}
			}
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	return steps[max(0, len(steps)-5):]
}

// answer selects an option by the rules of decide.
func (q *adviceQuestion) answer(p *evidence.Predictor) {
	var all []option
	for _, b := range q.batches {
		all = append(all, q.perBatch(p, b))
	}
	q.options = all
	q.choice = q.decide(all)
	q.promise = q.choice.promised
}

func (q *adviceQuestion) option(p *evidence.Predictor, b, epochs int) option {
	c := configurationOf(q.dataset, b, "v100")
	o := option{batch: b, epochs: epochs, probability: 1}
	passage := p.Passage(c, q.target)
	o.time, o.accuracy = p.Time(c, epochs), p.Accuracy(c, epochs)
	if !o.time.Known() {
		o.probability = 0
	} else if q.seconds() {
		o.probability = o.time.Probability(q.slo)
	}
	o.seconds = o.time.Median()
	if q.target > 0 {
		o.probability *= p.Reaches(c, q.target, epochs)
	}
	o.value = o.probability * o.accuracy.Mean
	o.promised = o.probability >= confidence && o.time.Support.Promisable() &&
		(q.target == 0 || passage.Promisable)
	return o
}

func (q *adviceQuestion) seconds() bool { return q.slo > 0 }

// perBatch returns the best option of one batch size among the numbers of epochs that meet the SLO
// and reach the target with some probabilities.
func (q *adviceQuestion) perBatch(p *evidence.Predictor, b int) option {
	if q.most == 0 {
		return q.option(p, b, q.epochs)
	}
	c := configurationOf(q.dataset, b, "v100")
	numbers := []int{q.most}
	for _, probability := range []float64{confidence, 0.99, 0.999} {
		if q.seconds() {
			numbers = append(numbers, largestEpochs(p, c, q.slo, probability, q.most))
		}
		if q.target > 0 {
			numbers = append(numbers, smallestEpochs(p, c, q.target, probability, q.most))
		}
	}
	var all []option
	for _, n := range numbers {
		all = append(all, q.option(p, b, max(n, 1)))
	}
	return q.decide(all)
}

// decide selects among promised options the highest probability times mean accuracy, then the
// fastest. With a target it selects the fastest; with target and SLO the fastest with 0.99, else the
// most probable. Without promised options it selects the highest probability times accuracy.
func (q *adviceQuestion) decide(all []option) option {
	var promised, sure []option
	for _, o := range all {
		if o.promised {
			promised = append(promised, o)
		}
		if o.promised && o.probability >= 0.99 {
			sure = append(sure, o)
		}
	}
	faster := func(a, b option) bool { return a.seconds < b.seconds }
	better := func(a, b option) bool {
		return a.value > b.value || a.value == b.value && a.seconds < b.seconds
	}
	likelier := func(a, b option) bool { return a.probability > b.probability }
	switch {
	case len(promised) == 0:
		return first(all, better)
	case q.target > 0 && !q.seconds():
		return first(promised, faster)
	case q.target > 0 && len(sure) > 0:
		return first(sure, faster)
	case q.target > 0:
		return first(promised, likelier)
	}
	return first(promised, better)
}

func first(all []option, before func(a, b option) bool) option {
	best := all[0]
	for _, o := range all[1:] {
		if before(o, best) {
			best = o
		}
	}
	return best
}

// largestEpochs returns the most epochs that end within a limit with a probability; 0: none.
func largestEpochs(p *evidence.Predictor, c evidence.Configuration, limit, probability float64, most int) int {
	return sort.Search(most, func(n int) bool {
		t := p.Time(c, n+1)
		return !t.Known() || t.Probability(limit) < probability
	})
}

// smallestEpochs returns the fewest epochs that reach a target with a probability; 0: none.
func smallestEpochs(p *evidence.Predictor, c evidence.Configuration, target, probability float64, most int) int {
	n := sort.Search(most, func(n int) bool { return p.Reaches(c, target, n+1) >= probability })
	if n == most {
		return 0
	}
	return n + 1
}
