package decide

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"courier/schemas"
)

// menu lists other ways to run the job. If the chosen alternative breaks a promise or misses the
// SLO, they avoid that. If the request leaves the SLO or the epochs open, they are the
// Pareto-optimal choices.
func (p *problem) menu(without unaffected, all []candidate, a *schemas.Advice) (choices []schemas.Choice) {
	if p.Request.SLO == 0 || p.Request.Epochs == 0 {
		choices = p.paretoChoices(all)
	}
	isKept := brokenCount(a) == 0 && a.Decision != schemas.BestEffort
	if isKept || a.Chosen.Extrapolated {
		return choices
	}
	s := menuSearch{p, without, all, variantOf(a.Chosen)}
	for _, c := range [...]*schemas.Choice{
		s.mostAccurateBatch(schemas.ChoiceBatch, s.chosen.cpus), s.fewerCPUs(), s.fewerEpochs(), s.laterStart(),
		s.laterDeadline(),
	} {
		if c != nil {
			choices = append(choices, *c)
		}
	}
	return choices
}

// menuSearch searches variants of the chosen alternative that keep the SLO and break no promise.
type menuSearch struct {
	*problem
	without    unaffected
	candidates []candidate
	chosen     variant
}

// try forecasts a variant, and compares the co-located jobs with their forecast without the job. The level is
// the probability of its upper bound. It returns nil if its time is unknown.
func (s *menuSearch) try(kind string, v variant, level float64) *trial {
	p := s.of(v.workers)
	f := p.forecast(v)
	if math.IsInf(f.job.end, 1) {
		return nil
	}
	c := p.variantOn(&f, v, level)
	t := &trial{
		Choice:     c.choice(kind),
		keepsSLO:   p.Request.SLO == 0 || c.Probability != nil && *c.Probability >= p.Request.Confidence,
		isHarmless: !s.breaksAny(s.without, &f),
	}
	t.StartSeconds = math.Round(v.wait*1e6) / 1e6
	return t
}

// harmless returns a variant that keeps its own SLO and breaks no promise, otherwise nil.
func (s *menuSearch) harmless(kind string, v variant) *schemas.Choice {
	if t := s.try(kind, v, s.Request.Confidence); t != nil && t.keepsSLO && t.isHarmless {
		return &t.Choice
	}
	return nil
}

// mostAccurateBatch returns the most accurate harmless variant with some CPUs among the batch sizes of
// the request.
func (s *menuSearch) mostAccurateBatch(kind string, cpus uint32) *schemas.Choice {
	var best *schemas.Choice
	for _, batch := range s.Request.BatchSizes {
		v := s.chosen
		v.batch, v.cpus = uint32(batch), cpus
		if v == s.chosen {
			continue
		}
		isSame := func(c candidate) bool {
			return c.BatchSize == v.batch && c.CPUs == cpus && c.Workers == v.workers
		}
		if i := slices.IndexFunc(s.candidates, isSame); i >= 0 {
			v.epochs = s.candidates[i].Epochs
		}
		c := s.harmless(kind, v)
		if c != nil && (best == nil || choiceAccuracy(c) > choiceAccuracy(best)) {
			best = c
		}
	}
	return best
}

// fewerCPUs tries fewer CPUs than chosen: the numbers in the request, and repeated halves of the
// chosen number.
func (s *menuSearch) fewerCPUs() *schemas.Choice {
	counts := slices.Clone([]int(s.Request.CPUs))
	for n := int(s.chosen.cpus) / 2; n > 0; n /= 2 {
		counts = append(counts, n)
	}
	slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) })
	for _, n := range slices.Compact(counts) {
		if n >= int(s.chosen.cpus) {
			continue
		}
		if c := s.mostAccurateBatch(schemas.ChoiceCPUs, uint32(n)); c != nil {
			return c
		}
	}
	return nil
}

// fewerEpochs finds the highest number of epochs that is harmless, by binary search.
func (s *menuSearch) fewerEpochs() *schemas.Choice {
	v, highest := s.chosen, s.chosen.epochs
	n := sort.Search(int(highest), func(less int) bool {
		v.epochs = highest - uint32(less)
		return less > 0 && s.harmless(schemas.ChoiceEpochs, v) != nil
	})
	if v.epochs = highest - uint32(n); v.epochs == 0 {
		return nil
	}
	return s.harmless(schemas.ChoiceEpochs, v)
}

// maxLaterStarts bounds the later starts that are tried after the first harmless one.
const maxLaterStarts = 8

// starts returns the times to try for a later start: now and the ends of co-located jobs, in order,
// from the first at which the variant is harmless.
func (s *menuSearch) starts(v variant) []float64 {
	ends := []float64{0}
	for i := range s.without.jobs {
		if end := s.without.jobs[i].end; !math.IsInf(end, 1) {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	first := sort.Search(len(ends), func(i int) bool {
		v.wait = ends[i]
		t := s.try("", v, s.Request.Confidence)
		return t != nil && t.isHarmless
	})
	return ends[first:min(len(ends), first+maxLaterStarts)]
}

// laterStart returns the earliest start at which the job keeps its SLO and breaks no promise.
func (s *menuSearch) laterStart() *schemas.Choice {
	v := s.chosen
	for _, v.wait = range s.starts(v) {
		if v.wait == 0 {
			continue
		}
		if c := s.harmless(schemas.ChoiceStart, v); c != nil {
			return c
		}
	}
	return nil
}

// laterDeadline returns the SLO that the job would keep at its first harmless start. With a target
// accuracy it runs until it reaches the target.
func (s *menuSearch) laterDeadline() *schemas.Choice {
	v, level := s.chosen, s.Request.Confidence
	if s.Request.TargetAccuracy > 0 && s.hasAccuracy {
		reach := (1 + level) / 2 // halfway to 1; the other half is for the time
		routes, _ := s.routes(s.candidates, reach)
		r := quickest(routes)
		if r == nil {
			return nil
		}
		v, level = r.variant, level/reach
	}
	starts := s.starts(v)
	if len(starts) == 0 {
		return nil
	}
	v.wait = starts[0]
	t := s.try(schemas.ChoiceDeadline, v, level)
	if t == nil || t.keepsSLO || !t.isHarmless || t.UpperBoundSeconds == nil {
		return nil
	}
	t.SLOSeconds = schemas.CeilSeconds(s.Elapsed.Seconds() + *t.UpperBoundSeconds)
	t.Probability = figure(s.Request.Confidence)
	return &t.Choice
}
