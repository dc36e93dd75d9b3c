package advisor

import (
	"slices"
	"strconv"

	"courier/regress/evidence"
	"courier/schemas"
)

// sentence builds a message without fmt, because every answer has one.
type sentence []byte

func (s *sentence) write(text string) { *s = append(*s, text...) }

func (s *sentence) seconds(v float64) { *s = schemas.AppendSeconds(*s, v) }

func (s *sentence) probability(p float64) { *s = schemas.AppendProbability(*s, p) }

func (s *sentence) ratio(v float64) { *s = strconv.AppendFloat(*s, v, 'g', 4, 64) }

func (s *sentence) exact(v float64) { *s = strconv.AppendFloat(*s, v, 'g', -1, 64) }

func (s *sentence) accuracy(v float64) { *s = strconv.AppendFloat(*s, v, 'f', 4, 64) }

func (s *sentence) number(n uint32) { *s = strconv.AppendUint(*s, uint64(n), 10) }

func (s *sentence) count(n int, of string) { *s = schemas.AppendCount(*s, uint64(n), of) }

// writeConfiguration writes the batch size and the CPUs of an alternative.
func (s *sentence) writeConfiguration(batch, cpus uint32) {
	s.write("batch size ")
	s.number(batch)
	s.write(" on ")
	s.count(int(cpus), "CPU")
}

// message describes the advice in a sentence.
func (d *decider) message() string {
	a, s := d.a, &d.text
	*s = (*s)[:0]
	if a.Chosen.PredictedSeconds == nil {
		d.writeUnknown()
		return string(*s)
	}
	if a.Decision == schemas.BestEffort {
		d.writeNoAlternative()
		s.write("; ")
	}
	s.writeConfiguration(a.Chosen.BatchSize, a.Chosen.CPUs)
	switch a.Decision {
	case schemas.BestEffort:
		s.write(" comes closest: ")
	case schemas.Exploring:
		s.write(": perhaps ")
	default:
		s.write(": ")
	}
	s.figures(a)
	d.writeCertainty()
	if n := brokenCount(a); n > 0 {
		s.write("; it would break the SLO of ")
		s.count(n, "running job")
	}
	return string(*s)
}

// writeCertainty writes the probability of the chosen alternative, or why it is unknown.
func (d *decider) writeCertainty() {
	a, s := d.a, &d.text
	c, target := a.Chosen, d.q.Request.TargetAccuracy
	switch {
	case a.Decision == schemas.Exploring:
		s.write("; nothing can be promised, because ")
		d.writeLacking()
	case a.Decision == schemas.Weighted && c.AccuracyProbability != nil:
		d.reachesTarget(*c.AccuracyProbability)
	case c.Probability == nil:
	case c.SLOProbability != nil && *c.Probability < unreachableTarget:
		s.write(", SLO met with probability ")
		s.probability(*c.SLOProbability)
	case target > 0 && c.AccuracyProbability != nil:
		s.write(", SLO met and accuracy ")
		s.ratio(target)
		s.write(" reached with probability ")
		s.probability(*c.Probability)
	default:
		s.write(", SLO met with probability ")
		s.probability(*c.Probability)
	}
	if a.Decision == schemas.MeetsSLO && *c.Probability < a.Confidence {
		s.write("; the confidence of ")
		s.ratio(a.Confidence)
		s.write(" applies to the mean of all promises")
	}
}

// reachesTarget writes the probability of the target accuracy.
func (d *decider) reachesTarget(p float64) {
	s, target := &d.text, d.q.Request.TargetAccuracy
	if m := &d.merits[0]; d.q.neverReached(m) {
		s.write("; ")
		d.writeNeverReached()
		return
	}
	s.write(", accuracy ")
	s.ratio(target)
	s.write(" reached with probability ")
	s.probability(p)
}

// writeNeverReached writes that no run of the model has reached the target accuracy.
func (d *decider) writeNeverReached() {
	s := &d.text
	s.write("no run of ")
	d.model()
	s.write(" has reached accuracy ")
	s.ratio(d.q.Request.TargetAccuracy)
	s.write(", the highest was ")
	s.ratio(d.merits[0].maxAccuracy)
}

// writeLacking writes why a chosen alternative with a known time cannot be promised.
func (d *decider) writeLacking() {
	a, s := d.a, &d.text
	switch c := a.Chosen; {
	case !d.byEvidence() && c.Extrapolated:
		s.write("that is outside the measured range")
	case c.Extrapolated:
		d.model()
		s.writeMissing(d.missing(c))
	case !d.knows.accuracy:
		s.write("no accuracy of ")
		d.model()
		s.write(" has been measured")
	default:
		s.write("its accuracy ")
		from := d.knownFrom(c.BatchSize)
		if from == 0 {
			s.write("with this batch size is not known")
			return
		}
		s.write("is known from epoch ")
		s.number(from)
		s.write(" on")
	}
}

// writeMissing writes which runs of a model exist in place of the missing ones.
func (s *sentence) writeMissing(m evidence.Missing) {
	s.write(" ran ")
	switch one := m.Low == m.High; {
	case m.Lacks == evidence.LacksConfigurations:
		s.write("in ")
		s.count(m.High, "configuration")
		s.write(" only")
	case m.Lacks == evidence.LacksCPUs && one:
		s.write("on this node type with ")
		s.count(m.Low, "CPU")
		s.write(" only")
	case m.Lacks == evidence.LacksCPUs:
		s.writeRange("on this node type with ", m, " to ", " CPUs")
	case m.Lacks == evidence.LacksBatchSize && one:
		s.writeRange("on this node type with batch size ", m, "", " only")
	case m.Lacks == evidence.LacksBatchSize:
		s.writeRange("on this node type with batch sizes ", m, " to ", "")
	case m.Lacks == evidence.LacksNeighbours:
		s.writeRange("on this node type with batch sizes ", m, " and ", ", but none between")
	case m.Lacks == evidence.LacksLoad && m.High == 1:
		s.write("on this node type only alone")
	case m.Lacks == evidence.LacksLoad && m.High > 0:
		s.writeRange("on this node type with ", m, " to ", " jobs at once")
	case m.Lacks == evidence.LacksLoad:
		s.write("on this node type, but never under such a load")
	default:
		s.write("too few times around that, or with times that differ too much")
	}
}

// writeRange writes a range of values, or its only value.
func (s *sentence) writeRange(before string, m evidence.Missing, to, after string) {
	s.write(before)
	s.number(uint32(m.Low))
	if m.High != m.Low {
		s.write(to)
		s.number(uint32(m.High))
	}
	s.write(after)
}

// writeUnknown writes what to run for a model whose times are unknown.
func (d *decider) writeUnknown() {
	a, s := d.a, &d.text
	next, ran := ": run it with ", 0
	if d.byEvidence() {
		ran = d.r.EpochTime.evidence.Epochs(nil, d.configuration(a.Chosen)).Counts.Model
	}
	switch {
	case ran > 0:
		d.model()
		s.write(" has ")
		s.count(ran, "run")
		if name := d.f.names[d.at[0]]; name != "" {
			s.write(", but none on a node like ")
			s.write(name)
		} else { // it was placed nowhere
			s.write(", but no live node has ")
			s.write(schemas.FormatCPUs(a.Chosen.CPUs))
			next = ": on such a node, run it with "
		}
	case len(d.q.Tried) > 0:
		s.write("nothing has been learned yet about ")
		d.model()
		s.write(", which has run")
	default:
		s.write("nothing is known yet about ")
		s.trained(a, d.otherDatasets())
	}
	s.write(next)
	s.writeConfiguration(a.Chosen.BatchSize, a.Chosen.CPUs)
	s.write(" to learn from it")
	for i, p := range a.Probes {
		switch i {
		case 0: // the chosen alternative, already in the message
			continue
		case 1:
			s.write("; to learn most, run an epoch next with ")
		default:
			s.write(", then with ")
		}
		s.writeConfiguration(p.BatchSize, p.CPUs)
	}
}

// brokenCount returns the number of running jobs whose promise the advice would break.
func brokenCount(a *schemas.Advice) (n int) {
	for i := range a.Effects {
		if a.Effects[i].BreaksSLO {
			n++
		}
	}
	return n
}

// figures writes the predicted time and accuracy of the chosen alternative, and the time left of
// the SLO.
func (s *sentence) figures(a *schemas.Advice) {
	c := a.Chosen
	s.count(int(c.Epochs), "epoch")
	s.write(" in ")
	s.seconds(*c.PredictedSeconds)
	if a.SLOSeconds > 0 {
		s.remaining(*c.PredictedSeconds, a.SLOSeconds-a.ElapsedSeconds)
	}
	if c.PredictedAccuracy != nil {
		s.write(", accuracy ")
		s.accuracy(*c.PredictedAccuracy)
	}
}

// remaining writes the seconds left of the SLO, compared with the seconds that the job needs.
func (s *sentence) remaining(needed, left float64) {
	switch {
	case left < 0:
		s.write(", but the SLO ended ")
		s.seconds(-left)
		s.write(" ago")
		return
	case needed > left:
		s.write(", ")
		s.seconds(needed - left)
		s.write(" more than the ")
	default:
		s.write(" of the ")
	}
	s.seconds(left)
	s.write(" that the SLO leaves")
}

// writeNoAlternative writes why no alternative can be promised.
func (d *decider) writeNoAlternative() {
	q, s := d.q, &d.text
	target := q.Request.TargetAccuracy
	byEvidence := len(d.merits) > 0
	switch {
	case target > 0 && byEvidence && q.neverReached(&d.merits[0]):
		d.writeNeverReached()
		return
	case target > 0 && byEvidence:
		s.write("no alternative meets the SLO and reaches accuracy ")
		s.ratio(target)
		s.write(" with probability ")
		s.ratio(d.a.RequiredProbability())
		s.write(": ")
		d.writeTargetObstacle()
		return
	case target > 0 && probability(d.a.Chosen) >= q.minProbability():
		s.write("no alternative that meets the SLO is predicted to reach accuracy ")
		s.ratio(target)
		return
	}
	if required := d.a.RequiredProbability(); required > maxProbability {
		s.write("no probability above ")
		s.exact(maxProbability)
		s.write(" is predicted, and ")
		s.exact(required)
		s.write(" is required")
		return
	}
	s.write("no alternative meets the SLO with probability ")
	s.ratio(d.a.RequiredProbability())
}

// writeTargetObstacle writes why SLO and target accuracy cannot be promised together.
func (d *decider) writeTargetObstacle() {
	s, limit := &d.text, d.q.epochsDone()+d.maxEpochsLeft()
	fewest, ever := d.fewestEpochs()
	quickest := d.quickestRoute(d.q.minProbability())
	switch {
	case fewest.alt == nil:
		s.write("however long it runs, the accuracy is reached with probability ")
		s.probability(ever)
		s.write(" at most")
	case quickest.alt == nil:
		s.write("the accuracy takes ")
		s.route(fewest)
		s.write(" at least, more than the ")
		s.number(limit)
		s.write(" requested")
	case quickest.seconds > d.q.left():
		s.write("the accuracy takes ")
		s.seconds(quickest.seconds)
		s.write(" at least (")
		s.route(quickest)
		s.write(")")
	default:
		d.writeJointShortfall()
	}
}

// writeJointShortfall writes the probabilities of SLO and target accuracy that are too low
// together.
func (d *decider) writeJointShortfall() {
	s, c := &d.text, d.a.Chosen
	if c.SLOProbability == nil || c.AccuracyProbability == nil {
		s.write("they are too unlikely together")
		return
	}
	s.write("at best the SLO is met with probability ")
	s.probability(*c.SLOProbability)
	s.write(" and the accuracy reached with ")
	s.probability(*c.AccuracyProbability)
}

func (s *sentence) route(r route) {
	s.count(int(r.epochs), "epoch")
	s.write(" with batch size ")
	s.number(r.alt.BatchSize)
}

// maxListedDatasets bounds the datasets in a message.
const maxListedDatasets = 5

// otherDatasets returns the sorted datasets of the model's runs if none of them is on the dataset
// of the question; "" stands for runs without a dataset. It returns nil if figures are known.
func (d *decider) otherDatasets() (all []string) {
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

// model writes the model of the question and its dataset.
func (d *decider) model() {
	r := d.r.EpochTime
	isNamed := func(c evidence.Configuration) bool {
		return c.Model == d.a.Model && c.Dataset != ""
	}
	d.text.model(d.a, r != nil && slices.ContainsFunc(r.trained, isNamed))
}

// model writes the model of an advice and its dataset. It mentions a missing dataset only if other
// runs of the model have one.
func (s *sentence) model(a *schemas.Advice, othersHave bool) {
	s.write("model ")
	s.write(a.Model)
	switch {
	case a.Dataset != "":
		s.write(" on dataset ")
		s.write(a.Dataset)
	case othersHave:
		s.write(" without a dataset")
	}
}

// trained writes the model of an advice and its dataset. If its runs are on other datasets, it
// lists them, because the user may have meant one of them.
func (s *sentence) trained(a *schemas.Advice, others []string) {
	s.model(a, len(others) > 0)
	if len(others) == 0 {
		return
	}
	s.write(" (it has run ")
	named := others
	if others[0] == "" {
		named = others[1:]
	}
	if len(named) > 0 {
		s.datasets(named)
	}
	if len(named) < len(others) {
		if len(named) > 0 {
			s.write(" and ")
		}
		s.write("without a dataset")
	}
	if a.Dataset == "" {
		s.write("; name one with --dataset")
	}
	s.write(")")
}

// datasets writes a list of datasets.
func (s *sentence) datasets(names []string) {
	if s.write("on dataset"); len(names) > 1 {
		s.write("s")
	}
	shown := names[:min(len(names), maxListedDatasets)]
	for i, name := range shown {
		switch {
		case i == 0:
			s.write(" ")
		case i == len(names)-1:
			s.write(" and ")
		default:
			s.write(", ")
		}
		s.write(name)
	}
	if rest := len(names) - len(shown); rest > 0 {
		s.write(" and ")
		s.number(uint32(rest))
		s.write(" more")
	}
}
