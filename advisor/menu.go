package advisor

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"courier/regress/evidence"
	"courier/schemas"
)

// forecastBaseline forecasts the co-located jobs without the job of the question.
func (d *decider) forecastBaseline() {
	d.f.run(nil)
	d.baseline = append(d.baseline[:0], d.f.jobs...)
	d.baselineProbabilities = d.baselineProbabilities[:0]
	for i := range d.baseline {
		d.baselineProbabilities = append(d.baselineProbabilities, d.probability(i, &d.baseline[i]))
	}
}

// effects predicts the effects of the chosen alternative on the co-located jobs. If the end of the
// job is unknown, it outlasts them.
func (d *decider) effects(chosen *schemas.Alternative) []schemas.Effect {
	d.forecastBaseline()
	d.f.run(d.forecastJob(chosen, d.loadOf(chosen.CPUs)))
	var all []schemas.Effect
	for i := range d.baseline {
		m, before, after := &d.q.Others[i], &d.baseline[i], &d.f.jobs[i]
		if math.IsInf(before.end, 1) || math.IsInf(after.end, 1) {
			continue
		}
		e := schemas.Effect{
			JobID:         m.JobID,
			BeforeSeconds: before.end,
			AfterSeconds:  after.end,
			Confidence:    m.Confidence,
			BreaksSLO:     d.breaks(i),
		}
		if without := d.baselineProbabilities[i]; !math.IsNaN(without) {
			with := d.probability(i, after)
			e.BeforeProbability, e.AfterProbability = &without, &with
		}
		all = append(all, e)
	}
	return all
}

// breaks reports whether the last forecast breaks the promise of a co-located job. A promise breaks
// if its probability falls below its threshold, or falls further while the SLO can still be met.
// The promise of a job that will probably miss its SLO cannot be broken. forecastBaseline must have
// been called.
func (d *decider) breaks(i int) bool {
	threshold, without := d.q.Others[i].minProbability(), d.baselineProbabilities[i]
	with := d.probability(i, &d.f.jobs[i])
	switch {
	case without >= threshold:
		return !(with >= threshold)
	case without >= likelyMissed:
		return !(with >= without-maxFurtherDrop)
	}
	return false
}

// maxFurtherDrop bounds the drop in probability of a promise that is already at risk.
const maxFurtherDrop = 0.01

// probability returns the probability that a co-located job meets its deadline, NaN if it has none
// or the probability is unknown.
func (d *decider) probability(i int, result *jobForecast) float64 {
	m := &d.q.Others[i]
	if m.Left == 0 || math.IsInf(result.end, 1) {
		return math.NaN()
	}
	o := outlook{
		seconds:       max(result.end, tinySeconds),
		uncertainty:   result.spread(evidence.Distribution{}, float64(m.epochsLeft())),
		table:         d.r.EpochTime.residuals(result.model, d.f.codes[result.at[0]]),
		narrowing:     result.narrowing,
		recalibration: d.q.Recalibration,
		shift:         d.q.Recalibration.shift(kindOf(&m.Setting)) + result.widening,
	}
	p, ok := o.probability(m.Left.Seconds(), m.Confidence)
	if !ok {
		return math.NaN()
	}
	return p
}

// menuVariant is a way to run the job that the menu considers.
type menuVariant struct {
	batch, cpus, epochs uint32
	wait                float64 // seconds until its start
	level               float64 // probability of its upper bound; 0 means the confidence
}

// menu lists other ways to run the job. If the chosen alternative breaks a promise or misses the
// SLO, they avoid that. If the request leaves the SLO or the epochs open, they are the
// Pareto-optimal choices.
func (d *decider) menu(a *schemas.Advice) (all []schemas.Choice) {
	if q := &d.q.Request; q.SLO == 0 || q.Epochs == 0 {
		all = d.paretoChoices(a)
	}
	if brokenCount(a) == 0 && a.Decision != schemas.BestEffort || a.Chosen.Extrapolated {
		return all
	}
	chosen := menuVariant{batch: a.Chosen.BatchSize, cpus: a.Chosen.CPUs, epochs: a.Chosen.Epochs}
	for _, way := range [...]func(*schemas.Advice, menuVariant) *schemas.Choice{
		d.anotherBatch, d.fewerCPUs, d.fewerEpochs, d.laterStart, d.laterDeadline,
	} {
		if c := way(a, chosen); c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// tryVariant forecasts a variant. keeps reports whether it keeps the SLO and reaches the target
// accuracy with enough probability, harmless whether it breaks no promise of another job.
func (d *decider) tryVariant(
	kind string, t menuVariant,
) (c *schemas.Choice, keeps, harmless bool) {
	alt := &schemas.Alternative{BatchSize: t.batch, CPUs: t.cpus, Epochs: t.epochs}
	load := d.loadOf(t.cpus)
	j := d.forecastJob(alt, load)
	j.wait = t.wait
	result := d.f.run(j)
	if math.IsInf(result.end, 1) {
		return nil, false, false
	}
	harmless = true
	for i := range d.baseline {
		harmless = harmless && !d.breaks(i)
	}
	o := d.outlook(result)
	c = &schemas.Choice{
		Kind: kind, BatchSize: t.batch, CPUs: t.cpus, Epochs: t.epochs,
		StartSeconds:     math.Round(t.wait*1e6) / 1e6,
		PredictedSeconds: d.figure(result.end), CPUSeconds: d.figure(
			(result.end - t.wait) * float64(t.cpus),
		),
	}
	reaches := d.tryAccuracy(c, load.Load)
	if bound, ok := o.bound(cmp.Or(t.level, d.q.Request.Confidence)); ok {
		c.UpperBoundSeconds = d.figure(bound)
	}
	keeps = d.q.Request.SLO == 0
	if !keeps {
		if p, ok := o.probability(d.q.left(), d.q.Request.Confidence); ok {
			c.Probability = d.figure(p * reaches)
			keeps = *c.Probability >= d.q.minProbability()
		}
	}
	return c, keeps, harmless
}

// tryAccuracy fills in the accuracy of a choice, and returns the probability of the target
// accuracy. The probability is 1 without a target, or if the regressor gives none.
func (d *decider) tryAccuracy(c *schemas.Choice, load schemas.Load) (reaches float64) {
	switch {
	case !d.knows.accuracy:
	case d.r.Accuracy.evidence != nil:
		a := d.r.Accuracy.accuracyAt(d.codes.accuracy, c.BatchSize, c.Epochs)
		if a.Known {
			c.PredictedAccuracy = d.figure(a.Median)
		}
		if t := d.q.Request.TargetAccuracy; t > 0 {
			return promisedReach(&a, t)
		}
	default:
		d.fillCurve(c.BatchSize, c.CPUs, c.Epochs, load)
		c.PredictedAccuracy = d.figure(d.curve.at(c.Epochs))
	}
	return 1
}

// harmlessVariant returns a variant that keeps its own SLO and breaks no promise, otherwise nil.
func (d *decider) harmlessVariant(kind string, t menuVariant) *schemas.Choice {
	if c, keeps, harmless := d.tryVariant(kind, t); keeps && harmless {
		return c
	}
	return nil
}

// mostAccurate returns the most accurate harmless variant among the batch sizes of the request.
func (d *decider) mostAccurate(kind string, a *schemas.Advice, t menuVariant) *schemas.Choice {
	var best *schemas.Choice
	for _, batch := range d.q.Request.BatchSizes {
		t.batch = uint32(batch)
		if t.batch == a.Chosen.BatchSize && t.cpus == a.Chosen.CPUs {
			continue
		}
		if alt := a.Running(t.batch, t.cpus); alt != nil {
			t.epochs = alt.Epochs
		}
		c := d.harmlessVariant(kind, t)
		if c != nil && (best == nil || choiceAccuracy(c) > choiceAccuracy(best)) {
			best = c
		}
	}
	return best
}

// choiceAccuracy returns the predicted accuracy of a choice, 0 if unknown.
func choiceAccuracy(c *schemas.Choice) float64 {
	if c.PredictedAccuracy == nil {
		return 0
	}
	return *c.PredictedAccuracy
}

// anotherBatch varies the batch size only.
func (d *decider) anotherBatch(a *schemas.Advice, t menuVariant) *schemas.Choice {
	return d.mostAccurate(schemas.ChoiceBatch, a, t)
}

// fewerCPUs tries fewer CPUs than chosen: the numbers in the request, and repeated halves of the
// chosen number.
func (d *decider) fewerCPUs(a *schemas.Advice, t menuVariant) *schemas.Choice {
	counts := slices.Clone([]int(d.q.Request.CPUs))
	for c := int(t.cpus) / 2; c > 0; c /= 2 {
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) })
	for _, c := range slices.Compact(counts) {
		if c >= int(a.Chosen.CPUs) {
			continue
		}
		t.cpus = uint32(c)
		if c := d.mostAccurate(schemas.ChoiceCPUs, a, t); c != nil {
			return c
		}
	}
	return nil
}

// fewerEpochs finds the highest number of epochs that is harmless, by binary search.
func (d *decider) fewerEpochs(_ *schemas.Advice, t menuVariant) *schemas.Choice {
	highest := t.epochs
	n := sort.Search(int(highest), func(less int) bool {
		t.epochs = highest - uint32(less)
		return less > 0 && d.harmlessVariant(schemas.ChoiceEpochs, t) != nil
	})
	if t.epochs = highest - uint32(n); t.epochs == 0 {
		return nil
	}
	return d.harmlessVariant(schemas.ChoiceEpochs, t)
}

// maxLaterStarts bounds the later starts that are tried after the first harmless one.
const maxLaterStarts = 8

// starts returns the times to try for a later start: now and the ends of co-located jobs, in order,
// from the first at which the variant is harmless.
func (d *decider) starts(t menuVariant) []float64 {
	ends := []float64{0}
	for i := range d.baseline {
		if end := d.baseline[i].end; !math.IsInf(end, 1) {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	first := sort.Search(len(ends), func(i int) bool {
		t.wait = ends[i]
		_, _, harmless := d.tryVariant("", t)
		return harmless
	})
	return ends[first:min(len(ends), first+maxLaterStarts)]
}

// laterStart returns the earliest start at which the job keeps its SLO and breaks no promise.
func (d *decider) laterStart(_ *schemas.Advice, t menuVariant) *schemas.Choice {
	for _, t.wait = range d.starts(t) {
		if t.wait == 0 {
			continue
		}
		if c := d.harmlessVariant(schemas.ChoiceStart, t); c != nil {
			return c
		}
	}
	return nil
}

// laterDeadline returns the SLO that the job would keep at its first harmless start. With a target
// accuracy it runs until it reaches the target.
func (d *decider) laterDeadline(a *schemas.Advice, t menuVariant) *schemas.Choice {
	if d.q.Request.TargetAccuracy > 0 && len(d.merits) > 0 {
		confidence := d.q.Request.Confidence
		reach := (1 + confidence) / 2 // halfway to 1; the other half is for the time
		r := d.quickestRoute(reach)
		if r.alt == nil {
			return nil
		}
		t = menuVariant{
			batch:  r.alt.BatchSize,
			cpus:   r.alt.CPUs,
			epochs: r.epochs,
			level:  confidence / reach,
		}
	}
	starts := d.starts(t)
	if len(starts) == 0 {
		return nil
	}
	t.wait = starts[0]
	c, keeps, harmless := d.tryVariant(schemas.ChoiceDeadline, t)
	if keeps || !harmless || c.UpperBoundSeconds == nil {
		return nil
	}
	c.SLOSeconds = schemas.CeilSeconds(d.q.Elapsed.Seconds() + *c.UpperBoundSeconds)
	c.Probability = d.figure(d.q.Request.Confidence)
	return c
}

// maxChoices bounds the Pareto-optimal choices of a menu.
const maxChoices = 12

// paretoChoices lists the alternatives such that none is faster, more accurate and cheaper at once,
// by time. If the request leaves the epochs open, it includes alternatives with fewer epochs.
func (d *decider) paretoChoices(a *schemas.Advice) []schemas.Choice {
	var all []schemas.Choice
	for i := range a.Alternatives {
		if alt := &a.Alternatives[i]; alt.PredictedSeconds != nil && alt.PredictedAccuracy != nil &&
			!alt.Extrapolated {
			all = append(all, d.choicesOf(alt)...)
		}
	}
	if t := d.q.Request.TargetAccuracy; t > 0 {
		all = slices.DeleteFunc(all, func(c schemas.Choice) bool { return choiceAccuracy(&c) < t })
	}
	slices.SortFunc(all, func(x, y schemas.Choice) int {
		return cmp.Or(
			cmp.Compare(*x.PredictedSeconds, *y.PredictedSeconds),
			cmp.Compare(*x.CPUSeconds, *y.CPUSeconds),
			cmp.Compare(choiceAccuracy(&y), choiceAccuracy(&x)),
		)
	})
	kept := all[:0]
	for _, c := range all { // a choice that dominates c comes before it
		if !slices.ContainsFunc(kept, func(k schemas.Choice) bool {
			return choiceAccuracy(&k) >= choiceAccuracy(&c) && *k.CPUSeconds <= *c.CPUSeconds
		}) {
			kept = append(kept, c)
		}
	}
	if n := len(kept); n > maxChoices { // an even selection with the first and the last
		for i := range maxChoices {
			kept[i] = kept[i*(n-1)/(maxChoices-1)]
		}
		kept = kept[:maxChoices]
	}
	return kept
}

// choicesOf returns an alternative as a choice, and with repeatedly halved epochs if the request
// leaves them open.
func (d *decider) choicesOf(alt *schemas.Alternative) []schemas.Choice {
	epochs := []uint32{alt.Epochs}
	if d.q.Request.Epochs == 0 {
		for n := alt.Epochs / 2; n > 0; n /= 2 {
			epochs = append(epochs, n)
		}
	}
	var all []schemas.Choice
	for _, n := range epochs {
		c, _, _ := d.tryVariant(schemas.ChoiceUnbeaten, menuVariant{
			batch:  alt.BatchSize,
			cpus:   alt.CPUs,
			epochs: n,
		})
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// route is a way to reach the target accuracy, regardless of the SLO.
type route struct {
	alt     *schemas.Alternative
	epochs  uint32  // since the beginning of the job
	seconds float64 // from now
}

// fewestEpochs returns the alternative that reaches the target accuracy in the fewest epochs with
// minProbability, and the highest probability with which any alternative ever reaches it.
func (d *decider) fewestEpochs() (fewest route, ever float64) {
	for i := range d.a.Alternatives {
		alt := &d.a.Alternatives[i]
		if alt.Extrapolated {
			continue
		}
		epochs, p := d.epochsTo(alt.BatchSize, d.q.minProbability())
		if ever = max(ever, p); epochs > 0 && (fewest.alt == nil || epochs < fewest.epochs) {
			fewest = route{alt: alt, epochs: epochs}
		}
	}
	return fewest, ever
}

// quickestRoute returns the alternative that reaches the target accuracy with probability p in the
// shortest time, within the epochs of the request.
func (d *decider) quickestRoute(p float64) (quickest route) {
	limit := d.q.epochsDone() + d.maxEpochsLeft()
	for i := range d.a.Alternatives {
		alt := &d.a.Alternatives[i]
		if alt.Extrapolated {
			continue
		}
		epochs, _ := d.epochsTo(alt.BatchSize, p)
		if epochs == 0 || epochs > limit {
			continue
		}
		if t := d.secondsOf(alt, epochs); quickest.alt == nil || t < quickest.seconds {
			quickest = route{alt, epochs, t}
		}
	}
	return quickest
}

// maxEpochsLeft returns the number of epochs that the job may still run.
func (d *decider) maxEpochsLeft() uint32 {
	q := d.q
	if q.Request.Epochs > 0 {
		return uint32(q.Request.Epochs) - min(uint32(q.Request.Epochs), q.epochsDone())
	}
	return d.maxEpochs()
}

// epochsTo returns the number of epochs after which a batch size has reached the target accuracy
// with probability p, 0 if never, and the probability that it ever reaches it.
func (d *decider) epochsTo(batch uint32, p float64) (epochs uint32, ever float64) {
	r, target := d.r.Accuracy, d.q.Request.TargetAccuracy
	a := r.accuracyAt(d.codes.accuracy, batch, schemas.MaxEpochs)
	if ever = promisedReach(&a, target); ever < p {
		return 0, ever
	}
	c := r.accuracyConfiguration(d.codes.accuracy, batch)
	return uint32(r.evidence.SmallestEpochs(c, target, p, schemas.MaxEpochs)), ever
}

// secondsOf predicts the end of an alternative that runs until an epoch.
func (d *decider) secondsOf(alt *schemas.Alternative, epochs uint32) float64 {
	another := *alt
	another.Epochs = epochs - min(epochs, d.q.epochsDone())
	return d.f.run(d.forecastJob(&another, d.loadOf(alt.CPUs))).end
}
