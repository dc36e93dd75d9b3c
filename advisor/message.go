package advisor

import (
	"strconv"

	"courier/regress/evidence"
	"courier/schemas"
)

// sentence is built without fmt: every answer has one.
type sentence []byte

func (s *sentence) say(text string)        { *s = append(*s, text...) }
func (s *sentence) seconds(v float64)      { *s = schemas.AppendSeconds(*s, v) }
func (s *sentence) chance(p float64)       { *s = schemas.AppendProbability(*s, p) }
func (s *sentence) ratio(v float64)        { *s = strconv.AppendFloat(*s, v, 'g', 4, 64) }
func (s *sentence) accuracy(v float64)     { *s = strconv.AppendFloat(*s, v, 'f', 4, 64) }
func (s *sentence) number(n uint32)        { *s = strconv.AppendUint(*s, uint64(n), 10) }
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
