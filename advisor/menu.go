package advisor

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"courier/regress/evidence"
	"courier/schemas"
)

// without runs the cluster forward without the job in question, once, and keeps
// what becomes of the others.
func (d *decision) forecastBaseline() {
	d.f.run(nil)
	d.baseline, d.baselineProbabilities = append(d.baseline[:0], d.f.jobs...), d.baselineProbabilities[:0]
	for i := range d.baseline {
		d.baselineProbabilities = append(d.baselineProbabilities, d.probability(i, &d.baseline[i]))
	}
}

// effects predicts what the job, run as chosen, does to those that run beside
// it. One whose own time nobody knows is taken to outlast them all.
func (d *decision) effects(chosen *schemas.Alternative) []schemas.Effect {
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
		if was := d.baselineProbabilities[i]; !math.IsNaN(was) {
			is := d.probability(i, after)
			e.BeforeProbability, e.AfterProbability = &was, &is
		}
		all = append(all, e)
	}
	return all
}

// breaks reports whether the last forecast breaks the promise to a running job:
// its probability falls under its threshold, or falls further while it can still
// be kept. What is lost already cannot be broken. Without is called before.
func (d *decision) breaks(i int) bool {
	c, was := d.q.Others[i].minProbability(), d.baselineProbabilities[i]
	is := d.probability(i, &d.f.jobs[i])
	switch {
	case was >= c:
		return !(is >= c)
	case was >= likelyMissed:
		return !(is >= was-maxFurtherDrop)
	}
	return false
}

// tolerated is by how much the probability of a promise at risk may fall.
const maxFurtherDrop = 0.01

// chance is how likely a running job meets its deadline; NaN if it has none or
// nobody knows.
func (d *decision) probability(i int, fate *jobForecast) float64 {
	m := &d.q.Others[i]
	if m.Left == 0 || math.IsInf(fate.end, 1) {
		return math.NaN()
	}
	o := outlook{
		seconds:       max(fate.end, tinySeconds),
		uncertainty:   fate.spread(evidence.Distribution{}, float64(m.epochsLeft())),
		table:         d.r.EpochTime.residuals(fate.model, d.f.codes[fate.at[0]]),
		narrowing:     fate.narrowing,
		recalibration: d.q.Recalibration,
		shift:         d.q.Recalibration.shift(kindOf(&m.Setting)) + fate.widening,
	}
	p, ok := o.probability(m.Left.Seconds(), m.Confidence)
	if !ok {
		return math.NaN()
	}
	return p
}

// trial is a way to run the job that the menu considers.
type variant struct {
	batch, cpus, epochs uint32
	wait                float64 // seconds before it starts
	level               float64 // probability of its bound; 0: the confidence
}

// menu lists other ways to run the job: out of what the chosen one breaks or
// misses, and what nothing beats where the request leaves open what it wants.
func (d *decision) menu(a *schemas.Advice) (all []schemas.Choice) {
	if q := &d.q.Request; q.SLO == 0 || q.Epochs == 0 {
		all = d.paretoChoices(a)
	}
	if brokenCount(a) == 0 && a.Decision != schemas.BestEffort || a.Chosen.Extrapolated {
		return all
	}
	chosen := variant{batch: a.Chosen.BatchSize, cpus: a.Chosen.CPUs, epochs: a.Chosen.Epochs}
	for _, way := range [...]func(*schemas.Advice, variant) *schemas.Choice{
		d.anotherBatch, d.fewerCPUs, d.fewerEpochs, d.laterStart, d.laterDeadline,
	} {
		if c := way(a, chosen); c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// try runs the cluster forward with the job run in another way: whether it keeps
// its own SLO, and the target accuracy, as surely as asked for, and breaks no promise to another.
func (d *decision) tryVariant(kind string, t variant) (c *schemas.Choice, keeps, harmless bool) {
	alt := &schemas.Alternative{BatchSize: t.batch, CPUs: t.cpus, Epochs: t.epochs}
	load := d.loadOf(t.cpus)
	j := d.forecastJob(alt, load)
	j.wait = t.wait
	fate := d.f.run(j)
	if math.IsInf(fate.end, 1) {
		return nil, false, false
	}
	harmless = true
	for i := range d.baseline {
		harmless = harmless && !d.breaks(i)
	}
	o := d.outlook(fate)
	c = &schemas.Choice{
		Kind: kind, BatchSize: t.batch, CPUs: t.cpus, Epochs: t.epochs,
		StartSeconds:     math.Round(t.wait*1e6) / 1e6,
		PredictedSeconds: d.figure(fate.end), CPUSeconds: d.figure(
			(fate.end - t.wait) * float64(t.cpus),
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
// accuracy; 1 without a target, or where it does not rest on evidence.
func (d *decision) tryAccuracy(c *schemas.Choice, load schemas.Load) (reaches float64) {
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
		d.accuracies(c.BatchSize, c.CPUs, c.Epochs, load)
		c.PredictedAccuracy = d.figure(d.curve.at(c.Epochs))
	}
	return 1
}

// way is a trial that keeps its own SLO and everybody else's; nil otherwise.
func (d *decision) harmlessVariant(kind string, t variant) *schemas.Choice {
	if c, keeps, harmless := d.tryVariant(kind, t); keeps && harmless {
		return c
	}
	return nil
}

// mostAccurate tries the batch sizes of the request, the most accurate first.
func (d *decision) mostAccurate(kind string, a *schemas.Advice, t variant) *schemas.Choice {
	var best *schemas.Choice
	for _, batch := range d.q.Request.BatchSizes {
		t.batch = uint32(batch)
		if t.batch == a.Chosen.BatchSize && t.cpus == a.Chosen.CPUs {
			continue
		}
		if alt := a.Running(t.batch, t.cpus); alt != nil {
			t.epochs = alt.Epochs
		}
		if c := d.harmlessVariant(kind, t); c != nil && (best == nil || choiceAccuracy(c) > choiceAccuracy(best)) {
			best = c
		}
	}
	return best
}

func choiceAccuracy(c *schemas.Choice) float64 {
	if c.PredictedAccuracy == nil {
		return 0
	}
	return *c.PredictedAccuracy
}

func (d *decision) anotherBatch(a *schemas.Advice, t variant) *schemas.Choice {
	return d.mostAccurate(schemas.ChoiceBatch, a, t)
}

// fewerCPUs tries counts below the chosen one: those of the request, and halves.
func (d *decision) fewerCPUs(a *schemas.Advice, t variant) *schemas.Choice {
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

// fewerEpochs finds the most epochs that fit: fewer take less of everything.
func (d *decision) fewerEpochs(_ *schemas.Advice, t variant) *schemas.Choice {
	most := t.epochs
	n := sort.Search(int(most), func(less int) bool {
		t.epochs = most - uint32(less)
		return less > 0 && d.harmlessVariant(schemas.ChoiceEpochs, t) != nil
	})
	if t.epochs = most - uint32(n); t.epochs == 0 {
		return nil
	}
	return d.harmlessVariant(schemas.ChoiceEpochs, t)
}

// laterTries bounds how many starts are looked at after the first that breaks
// nothing.
const maxLaterStarts = 8

// starts are the moments at which somebody leaves, in order, from the first on
// at which the job breaks nothing; now is the first moment.
func (d *decision) starts(t variant) []float64 {
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

func (d *decision) laterStart(_ *schemas.Advice, t variant) *schemas.Choice {
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

// laterDeadline asks for the SLO that the job keeps once it breaks nothing. With a target accuracy
// it runs as long as the target takes.
func (d *decision) laterDeadline(a *schemas.Advice, t variant) *schemas.Choice {
	if d.q.Request.TargetAccuracy > 0 && len(d.merits) > 0 {
		confidence := d.q.Request.Confidence
		reach := (1 + confidence) / 2 // halfway to 1, so that as much is left for the time
		r := d.quickestRoute(reach)
		if r.alt == nil {
			return nil
		}
		t = variant{
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

// mostChoices bounds how many un-beaten choices a menu has.
const maxChoices = 12

// unbeaten lists the alternatives, with fewer epochs too where they are free,
// than which none is faster, more accurate and cheaper at once (Pareto), by time.
func (d *decision) paretoChoices(a *schemas.Advice) []schemas.Choice {
	var all []schemas.Choice
	for i := range a.Alternatives {
		if alt := &a.Alternatives[i]; alt.PredictedSeconds != nil && alt.PredictedAccuracy != nil &&
			!alt.Extrapolated {
			all = append(all, d.choicesOf(alt)...)
		}
	}
	if t := d.q.Request.TargetAccuracy; t > 0 { // what falls short of it was not asked for
		all = slices.DeleteFunc(all, func(c schemas.Choice) bool { return choiceAccuracy(&c) < t })
	}
	slices.SortFunc(all, func(x, y schemas.Choice) int {
		return cmp.Or(cmp.Compare(*x.PredictedSeconds, *y.PredictedSeconds),
			cmp.Compare(*x.CPUSeconds, *y.CPUSeconds), cmp.Compare(choiceAccuracy(&y), choiceAccuracy(&x)))
	})
	kept := all[:0]
	for _, c := range all { // whoever beats it takes no longer, so it is kept already
		if !slices.ContainsFunc(kept, func(k schemas.Choice) bool {
			return choiceAccuracy(&k) >= choiceAccuracy(&c) && *k.CPUSeconds <= *c.CPUSeconds
		}) {
			kept = append(kept, c)
		}
	}
	if n := len(kept); n > maxChoices { // the first, the last, and every so many between
		for i := range maxChoices {
			kept[i] = kept[i*(n-1)/(maxChoices-1)]
		}
		kept = kept[:maxChoices]
	}
	return kept
}

// offers are the choices that one alternative makes: as it is, and with halves
// of its epochs where the request leaves them open.
func (d *decision) choicesOf(alt *schemas.Alternative) []schemas.Choice {
	epochs := []uint32{alt.Epochs}
	if d.q.Request.Epochs == 0 {
		for n := alt.Epochs / 2; n > 0; n /= 2 {
			epochs = append(epochs, n)
		}
	}
	var all []schemas.Choice
	for _, n := range epochs {
		c, _, _ := d.tryVariant(schemas.ChoiceUnbeaten, variant{
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

// route is how a target accuracy is reached, SLO or not.
type route struct {
	alt     *schemas.Alternative
	epochs  uint32  // from the beginning
	seconds float64 // from now on
}

// fewestEpochs returns the alternative that reaches the target accuracy as surely as asked for in
// the fewest epochs, and the highest probability with which any ever reaches it.
func (d *decision) fewestEpochs() (fewest route, ever float64) {
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

// quickestRoute returns the alternative that reaches the target accuracy with a probability in the
// shortest time, within the epochs that were asked for.
func (d *decision) quickestRoute(p float64) (quickest route) {
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

// mostEpochs is how many epochs the job may still run.
func (d *decision) maxEpochsLeft() uint32 {
	q := d.q
	if q.Request.Epochs > 0 {
		return uint32(q.Request.Epochs) - min(uint32(q.Request.Epochs), q.epochsDone())
	}
	return d.maxEpochs()
}

// epochsTo returns after how many epochs a batch size has reached the target accuracy with a
// probability, 0 if never, and the probability that it is ever reached.
func (d *decision) epochsTo(batch uint32, p float64) (epochs uint32, ever float64) {
	r, target := d.r.Accuracy, d.q.Request.TargetAccuracy
	a := r.accuracyAt(d.codes.accuracy, batch, schemas.MaxEpochs)
	if ever = promisedReach(&a, target); ever < p {
		return 0, ever
	}
	c := r.accuracyConfiguration(d.codes.accuracy, batch)
	return uint32(r.evidence.SmallestEpochs(c, target, p, schemas.MaxEpochs)), ever
}

// secondsOf predicts when an alternative would end that ran until some epoch.
func (d *decision) secondsOf(alt *schemas.Alternative, epochs uint32) float64 {
	another := *alt
	another.Epochs = epochs - min(epochs, d.q.epochsDone())
	return d.f.run(d.forecastJob(&another, d.loadOf(alt.CPUs))).end
}
