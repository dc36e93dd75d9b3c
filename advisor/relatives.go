package advisor

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"courier/schemas"
)

// Description is what requests and jobs say of a model.
type Description struct {
	Parameters      uint64 // weights of the network; 0 if unknown
	TrainingSamples uint64 // in one epoch; 0 if unknown

	ValidationSamples uint64 // that its accuracies are of; 0 if unknown
}

// Sighting is an epoch that was seen of a model, whether a regressor knows it or
// not.
type Sighting struct {
	Configuration
	Seconds  float64
	Load     schemas.Load
	Hardware schemas.Hardware // of the node where it is that
}

// keptSightings bounds how many epochs of a model are kept, the last ones.
const keptSightings = 32

// keptModels bounds how many models are described; more stay undescribed.
const keptModels = 1024

// describe notes what is said of a model; zeros say nothing. The map is never changed in place, so
// that questions may keep it.
func (c *Cluster) describe(model string, said Description) {
	was, known := c.described[model]
	d := Description{cmp.Or(said.Parameters, was.Parameters), cmp.Or(said.TrainingSamples, was.TrainingSamples), cmp.Or(said.ValidationSamples, was.ValidationSamples)}
	if d == was || !known && len(c.described) >= keptModels {
		return
	}
	all := maps.Clone(c.described)
	if all == nil {
		all = map[string]Description{}
	}
	all[model] = d
	c.described = all
}

// relative is a known model that stands in for one that nobody knows.
type relative struct {
	name   string
	code   float64
	factor float64 // how much longer an epoch of the unknown model takes
	spread float64 // standard deviation of the log time
	weight float64 // how much it counts, all together 1
}

// Of a model that was never measured.
const (
	// strange is how far log times of a relative are off before anything was
	// seen: a factor of two, one time in three more. A prior, not measured.
	strange = math.Ln2
	// leastNoise keeps a regressor that fits too well from being believed alone.
	leastNoise = 0.05
	// mostRelatives bounds the cost of an answer.
	mostRelatives = 8
)

// relatives weighs the known models by how much they are like one that nobody
// knows: by its size, and by how well they explain the epochs that were seen of
// it. The log factor between both has a normal prior and is corrected by each
// epoch seen (conjugate update); weights follow the likelihood of those epochs.
func (d *decision) relatives() {
	r, q := d.r.EpochTime, d.q
	own := Description{Parameters: q.Request.Parameters, TrainingSamples: q.Request.TrainingSamples}
	d.kin = d.kin[:0]
	for code, name := range r.predictor.Features()[r.model].Levels {
		k := relative{name: name, code: float64(code)}
		base, size := 0.0, 0.0
		if other := q.Described[name]; own.TrainingSamples > 0 && other.TrainingSamples > 0 {
			base = math.Log(float64(own.TrainingSamples) / float64(other.TrainingSamples))
		}
		if other := q.Described[name]; own.Parameters > 0 && other.Parameters > 0 {
			size = math.Abs(math.Log(float64(own.Parameters) / float64(other.Parameters)))
		}
		noise := max(leastNoise, deviation(r.residuals(k.code, d.on())))
		n, mean, squares := d.unexplained(k.code, base)
		prior := strange * strange
		shrunk := n * prior / (n*prior + noise*noise)
		k.factor = math.Exp(base + shrunk*mean)
		k.spread = math.Sqrt(prior*noise*noise/(n*prior+noise*noise) + noise*noise)
		// log weight: like in size, and the likelihood of what was seen, its mean under the prior
		k.weight = -size - squares/(2*noise*noise)
		if n > 0 {
			k.weight -= mean * mean / (2 * (prior + noise*noise/n))
		}
		d.kin = append(d.kin, k)
	}
	normalise(&d.kin)
}

// unexplained compares the epochs seen of the unknown model with a relative's:
// how many they are, the mean of their log ratios, and the sum of squares about it.
func (d *decision) unexplained(code, base float64) (n, mean, squares float64) {
	var on reading
	for i := range d.q.Seen {
		s := &d.q.Seen[i]
		f := schemas.Features{BatchSize: s.BatchSize, CPUs: s.CPUs, ModelCode: code, Load: s.Load, Node: on.node(d.r.EpochTime, s.Hardware)}
		p, ok := d.r.EpochTime.predict(&f, &d.f.memory)
		if !ok || p.Value <= 0 {
			continue
		}
		e := math.Log(s.Seconds/p.Value) - base
		n++
		delta := e - mean
		mean += delta / n
		squares += delta * (e - mean)
	}
	return n, mean, squares
}

// normalise turns log weights into shares of 1 and keeps the heaviest.
func normalise(kin *[]relative) {
	all := *kin
	slices.SortStableFunc(all, func(a, b relative) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	all = all[:min(len(all), mostRelatives)]
	sum, top := 0.0, all[0].weight
	for i := range all {
		all[i].weight = math.Exp(all[i].weight - top)
		sum += all[i].weight
	}
	for i := range all {
		all[i].weight /= sum
	}
	*kin = all
}

// deviation is the root mean square of residuals; 0 where there are none.
func deviation(residuals []float64) float64 {
	sum := 0.0
	for _, e := range residuals {
		sum += e * e
	}
	if len(residuals) == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(len(residuals)))
}

// fates are the ends of the job as each relative would have them.
type fates struct {
	kin  []relative
	ends []float64 // medians, in seconds; +Inf: nobody knows
}

// share is how likely the job is over within some seconds: the mixture of its
// relatives' log-normal times.
func (f *fates) share(seconds float64) (p float64) {
	for i, k := range f.kin {
		p += k.weight * 0.5 * math.Erfc((math.Log(f.ends[i])-math.Log(seconds))/(k.spread*math.Sqrt2))
	}
	return p
}

// within is the time that the job stays within with a probability, by bisection
// of the log time.
func (f *fates) within(p float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	const far = 12 // standard deviations
	for i, k := range f.kin {
		low, high = min(low, math.Log(f.ends[i])-far*k.spread), max(high, math.Log(f.ends[i])+far*k.spread)
	}
	for range 60 {
		if middle := (low + high) / 2; f.share(math.Exp(middle)) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(high)
}

// coldStart fills the figures of an alternative from the relatives of a model that
// nobody knows. They are wide, and promise nothing.
func (d *decision) coldStart(alt *schemas.Alternative, load surroundings) {
	f := fates{kin: d.kin, ends: d.ends[:0]}
	for _, k := range d.kin {
		j := d.ahead(alt, load)
		j.model, j.known, j.factor = k.code, true, k.factor
		end := d.f.run(j).end
		if math.IsInf(end, 1) || end <= 0 {
			return
		}
		f.ends = append(f.ends, end)
	}
	d.ends = f.ends
	median := f.within(0.5)
	alt.Extrapolated = true
	alt.PredictedSeconds, alt.UpperBoundSeconds = d.figure(median), d.figure(f.within(d.q.Request.Confidence))
	alt.CPUSeconds = d.figure(median * float64(alt.CPUs))
	if left := d.q.left(); d.q.Request.SLO > 0 && left > 0 {
		alt.Probability = d.figure(f.share(left))
	}
}
