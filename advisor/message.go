package advisor

import (
	"slices"
	"strconv"

	"courier/regress/evidence"
	"courier/schemas"
)

// sentence is built without fmt: every answer has one.
type sentence []byte

func (s *sentence) say(text string) { *s = append(*s, text...) }

func (s *sentence) seconds(v float64) { *s = schemas.AppendSeconds(*s, v) }

func (s *sentence) chance(p float64) { *s = schemas.AppendProbability(*s, p) }

func (s *sentence) ratio(v float64) { *s = strconv.AppendFloat(*s, v, 'g', 4, 64) }

func (s *sentence) accuracy(v float64) { *s = strconv.AppendFloat(*s, v, 'f', 4, 64) }

func (s *sentence) number(n uint32) { *s = strconv.AppendUint(*s, uint64(n), 10) }

func (s *sentence) count(n int, of string) { *s = schemas.AppendCount(*s, uint64(n), of) }

// setting names the batch size and the CPUs of an alternative.
func (s *sentence) setting(batch, cpus uint32) {
	s.say("batch size ")
	s.number(batch)
	s.say(" on ")
	s.count(int(cpus), "CPU")
}

// message describes the advice in a sentence, which comes together in d.words.
func (d *decision) message() string {
	a, s := d.a, &d.words
	*s = (*s)[:0]
	if a.Chosen.PredictedSeconds == nil {
		d.unknown()
		return string(*s)
	}
	if a.Decision == schemas.BestEffort {
		d.whyNone()
		s.say("; ")
	}
	s.setting(a.Chosen.BatchSize, a.Chosen.CPUs)
	switch a.Decision {
	case schemas.BestEffort:
		s.say(" comes closest: ")
	case schemas.Exploring:
		s.say(": perhaps ")
	default:
		s.say(": ")
	}
	s.figures(a)
	d.certainty()
	if n := broken(a); n > 0 {
		s.say("; it would break the SLO of ")
		s.count(n, "running job")
	}
	return string(*s)
}

// certainty describes how likely the chosen alternative keeps what was asked for, or why nothing
// is known of that.
func (d *decision) certainty() {
	a, s := d.a, &d.words
	c, target := a.Chosen, d.q.Request.TargetAccuracy
	switch {
	case a.Decision == schemas.Exploring:
		s.say("; nothing can be promised, because ")
		d.lacking()
	case a.Decision == schemas.Weighted && c.AccuracyProbability != nil:
		d.reachesTarget(*c.AccuracyProbability)
	case c.Probability == nil:
	case c.SLOProbability != nil && *c.Probability < hopelessTarget:
		s.say(", SLO kept with probability ")
		s.chance(*c.SLOProbability)
	case target > 0 && c.AccuracyProbability != nil:
		s.say(", SLO kept and accuracy ")
		s.ratio(target)
		s.say(" reached with probability ")
		s.chance(*c.Probability)
	default:
		s.say(", kept with probability ")
		s.chance(*c.Probability)
	}
	if a.Decision == schemas.MeetsSLO && *c.Probability < a.Confidence {
		s.say(", as ")
		s.ratio(a.Confidence)
		s.say(" is asked of the mean of all promises")
	}
}

// reachesTarget describes how likely the target accuracy is reached.
func (d *decision) reachesTarget(p float64) {
	s, target := &d.words, d.q.Request.TargetAccuracy
	if m := &d.merits[0]; d.q.neverReached(m) {
		s.say("; ")
		d.never()
		return
	}
	s.say(", accuracy ")
	s.ratio(target)
	s.say(" reached with probability ")
	s.chance(p)
}

// never says that no run of the model has reached the target accuracy.
func (d *decision) never() {
	s := &d.words
	s.say("no run of ")
	d.model()
	s.say(" has reached accuracy ")
	s.ratio(d.q.Request.TargetAccuracy)
	s.say(", the highest was ")
	s.ratio(d.merits[0].highest)
}

// lacking says why nothing can be promised of the chosen alternative, whose time is known.
func (d *decision) lacking() {
	a, s := d.a, &d.words
	switch c := a.Chosen; {
	case !d.byEvidence() && c.Extrapolated:
		s.say("that is beyond what was measured")
	case c.Extrapolated:
		d.model()
		s.lacks(d.missing(c))
	case !d.knows.accuracy:
		s.say("no accuracy of ")
		d.model()
		s.say(" has been measured")
	default:
		s.say("its accuracy ")
		from := d.knownFrom(c.BatchSize)
		if from == 0 {
			s.say("with this batch size is not known")
			return
		}
		s.say("is known from epoch ")
		s.number(from)
		s.say(" on")
	}
}

// lacks says what runs of a model there are instead of those that are missing.
func (s *sentence) lacks(m evidence.Missing) {
	s.say(" ran ")
	switch one := m.Low == m.High; {
	case m.Lacks == evidence.LacksConfigurations:
		s.say("in ")
		s.count(m.High, "configuration")
		s.say(" only")
	case m.Lacks == evidence.LacksCPUs && one:
		s.say("on such nodes with ")
		s.count(m.Low, "CPU")
		s.say(" only")
	case m.Lacks == evidence.LacksCPUs:
		s.between("on such nodes with ", m, " to ", " CPUs")
	case m.Lacks == evidence.LacksBatchSize && one:
		s.between("on such nodes with batch size ", m, "", " only")
	case m.Lacks == evidence.LacksBatchSize:
		s.between("on such nodes with batch sizes ", m, " to ", "")
	case m.Lacks == evidence.LacksNeighbours:
		s.between("on such nodes with batch sizes ", m, " and ", ", but none between")
	case m.Lacks == evidence.LacksLoad && m.High == 1:
		s.say("on such nodes only alone")
	case m.Lacks == evidence.LacksLoad && m.High > 0:
		s.between("on such nodes with ", m, " to ", " jobs at once")
	case m.Lacks == evidence.LacksLoad:
		s.say("on such nodes, but never under such a load")
	default:
		s.say("too seldom around that, or too differently")
	}
}

// between writes what ran: a range, or its one value.
func (s *sentence) between(before string, m evidence.Missing, to, after string) {
	s.say(before)
	s.number(uint32(m.Low))
	if m.High != m.Low {
		s.say(to)
		s.number(uint32(m.High))
	}
	s.say(after)
}

// unknown says what to run of a model whose times are not known.
func (d *decision) unknown() {
	a, s := d.a, &d.words
	ran := 0
	if d.byEvidence() {
		ran = d.r.EpochTime.evidence.Epochs(nil, d.configuration(a.Chosen)).Counts.Model
	}
	switch {
	case ran > 0:
		d.model()
		s.say(" has ")
		s.count(ran, "run")
		s.say(", but none on a node like ")
		s.say(d.f.names[d.at[0]])
	case len(d.q.Tried) > 0:
		s.say("nothing has been learned yet of ")
		d.model()
		s.say(", which has run")
	default:
		s.say("nothing is known yet of ")
		s.trained(a, d.otherDatasets())
	}
	s.say(": run it with ")
	s.setting(a.Chosen.BatchSize, a.Chosen.CPUs)
	s.say(" to learn from it")
	for i, p := range a.Probes {
		switch i {
		case 0: // the chosen configuration
			continue
		case 1:
			s.say("; to learn most, run an epoch next with ")
		default:
			s.say(", then with ")
		}
		s.setting(p.BatchSize, p.CPUs)
	}
}

// broken is how many running jobs would lose the promise that they were given.
func broken(a *schemas.Advice) (n int) {
	for i := range a.Effects {
		if a.Effects[i].BreaksSLO {
			n++
		}
	}
	return n
}

// figures describes what the chosen alternative takes and reaches, and what the SLO leaves.
func (s *sentence) figures(a *schemas.Advice) {
	c := a.Chosen
	s.count(int(c.Epochs), "epoch")
	s.say(" in ")
	s.seconds(*c.PredictedSeconds)
	if a.SLOSeconds > 0 {
		s.remaining(*c.PredictedSeconds, a.SLOSeconds-a.ElapsedSeconds)
	}
	if c.PredictedAccuracy != nil {
		s.say(", accuracy ")
		s.accuracy(*c.PredictedAccuracy)
	}
}

// remaining describes the seconds that the SLO leaves beside those that are needed.
func (s *sentence) remaining(needed, left float64) {
	switch {
	case left < 0:
		s.say(", ")
		s.seconds(-left)
		s.say(" after the SLO")
		return
	case needed > left:
		s.say(", ")
		s.seconds(needed - left)
		s.say(" more than the ")
	default:
		s.say(" of the ")
	}
	s.seconds(left)
	s.say(" that the SLO leaves")
}

// whyNone says why no alternative can be promised.
func (d *decision) whyNone() {
	q, s := d.q, &d.words
	target := q.Request.TargetAccuracy
	byEvidence := len(d.merits) > 0
	switch {
	case target > 0 && byEvidence && q.neverReached(&d.merits[0]):
		d.never()
		return
	case target > 0 && byEvidence:
		s.say("no alternative keeps the SLO and reaches accuracy ")
		s.ratio(target)
		s.say(" with probability ")
		s.ratio(d.a.RequiredProbability())
		s.say(": ")
		d.whyNotTarget()
		return
	case target > 0 && probability(d.a.Chosen) >= q.least():
		s.say("no alternative that keeps the SLO is predicted to reach accuracy ")
		s.ratio(target)
		return
	}
	s.say("no alternative keeps the SLO with probability ")
	s.ratio(d.a.RequiredProbability())
}

// whyNotTarget says what keeps the SLO and the target accuracy from being promised together.
func (d *decision) whyNotTarget() {
	s, limit := &d.words, d.q.epochsDone()+d.mostEpochs()
	fewest, ever := d.fewestEpochs()
	quickest := d.quickestRoute(d.q.least())
	switch {
	case fewest.alt == nil:
		s.say("however long it runs, the accuracy is reached with probability ")
		s.chance(ever)
		s.say(" at most")
	case quickest.alt == nil:
		s.say("the accuracy takes ")
		s.route(fewest)
		s.say(" at least, more than the ")
		s.number(limit)
		s.say(" asked for")
	case quickest.seconds > d.q.left():
		s.say("the accuracy takes ")
		s.seconds(quickest.seconds)
		s.say(" at least (")
		s.route(quickest)
		s.say(")")
	default:
		d.whyNotBoth()
	}
}

// whyNotBoth says by which probabilities SLO and target accuracy are too unlikely together.
func (d *decision) whyNotBoth() {
	s, c := &d.words, d.a.Chosen
	if c.SLOProbability == nil || c.AccuracyProbability == nil {
		s.say("they are too unlikely together")
		return
	}
	s.say("at best the SLO is kept with ")
	s.chance(*c.SLOProbability)
	s.say(" and the accuracy reached with ")
	s.chance(*c.AccuracyProbability)
}

func (s *sentence) route(r route) {
	s.count(int(r.epochs), "epoch")
	s.say(" with batch size ")
	s.number(r.alt.BatchSize)
}

// mostDatasets is how many datasets a message lists.
const mostDatasets = 5

// otherDatasets returns the datasets, in order, of the runs of the question's model, where none of
// them is on the question's dataset; "" stands for runs without a dataset. It is nil where figures
// are known.
func (d *decision) otherDatasets() (all []string) {
	r := d.r.EpochTime
	if r == nil || d.a.Chosen.PredictedSeconds != nil || d.codes.time >= 0 {
		return nil
	}
	for i := range r.trained {
		if c := &r.trained[i]; c.Model == d.a.Model {
			all = append(all, c.Dataset)
		}
	}
	slices.Sort(all)
	return all
}

// model names the model of the question and its dataset, whose runs alone count.
func (d *decision) model() {
	r := d.r.EpochTime
	isNamed := func(c evidence.Configuration) bool {
		return c.Model == d.a.Model && c.Dataset != ""
	}
	d.words.model(d.a, r != nil && slices.ContainsFunc(r.trained, isNamed))
}

// model names the model of an advice and its dataset. Without one it is said that there is none
// where other runs of the model have one.
func (s *sentence) model(a *schemas.Advice, othersHave bool) {
	s.say("model ")
	s.say(a.Model)
	switch {
	case a.Dataset != "":
		s.say(" on dataset ")
		s.say(a.Dataset)
	case othersHave:
		s.say(" without a dataset")
	}
}

// trained names the model of an advice and its dataset. Where its runs are on other datasets,
// they are listed: their figures are no prediction, but one of them may be what was meant.
func (s *sentence) trained(a *schemas.Advice, others []string) {
	s.model(a, len(others) > 0)
	if len(others) == 0 {
		return
	}
	s.say(" (it has run ")
	named := others
	if others[0] == "" {
		named = others[1:]
	}
	if len(named) > 0 {
		s.datasets(named)
	}
	if len(named) < len(others) {
		if len(named) > 0 {
			s.say(" and ")
		}
		s.say("without a dataset")
	}
	if a.Dataset == "" {
		s.say("; name one with --dataset")
	}
	s.say(")")
}

// datasets lists names.
func (s *sentence) datasets(names []string) {
	if s.say("on dataset"); len(names) > 1 {
		s.say("s")
	}
	shown := names[:min(len(names), mostDatasets)]
	for i, name := range shown {
		switch {
		case i == 0:
			s.say(" ")
		case i == len(names)-1:
			s.say(" and ")
		default:
			s.say(", ")
		}
		s.say(name)
	}
	if rest := len(names) - len(shown); rest > 0 {
		s.say(" and ")
		s.number(uint32(rest))
		s.say(" more")
	}
}
