package advisor

import (
	"fmt"
	"strconv"

	"courier/schemas"
)

// sentence is built without fmt: every answer has one.
type sentence []byte

func (s *sentence) say(text string) { *s = append(*s, text...) }
func (s *sentence) count(n uint32)  { *s = strconv.AppendUint(*s, uint64(n), 10) }
func (s *sentence) number(v float64, f byte, digits int) {
	*s = strconv.AppendFloat(*s, v, f, digits, 64)
}

// message says the advice in a sentence, which comes together in s.
func message(a *schemas.Advice, s *sentence) string {
	c := a.Chosen
	if c.PredictedSeconds == nil {
		return fmt.Sprintf("nothing is known yet of model %s: run it with batch size %d on %d CPUs to learn from it", a.Model, c.BatchSize, c.CPUs)
	}
	if len(a.Relatives) > 0 {
		return guess(a)
	}
	*s = (*s)[:0]
	if a.Decision == schemas.BestEffort {
		s.say("no alternative keeps the SLO with probability ")
		s.number(a.Least(), 'g', 3)
		s.say("; ")
	}
	s.say("batch size ")
	s.count(c.BatchSize)
	s.say(" on ")
	s.count(c.CPUs)
	s.say(" CPUs")
	switch a.Decision {
	case schemas.BestEffort:
		s.say(" is the most likely: ")
	case schemas.Exploring:
		s.say(": perhaps ")
	default:
		s.say(": ")
	}
	s.figures(a)
	switch {
	case a.Decision == schemas.Exploring:
		s.say(", but that is beyond what was measured")
	case a.Decision != schemas.BestEffort && c.Probability != nil:
		s.say(", kept with probability ")
		s.number(*c.Probability, 'f', 3)
		if *c.Probability < a.Confidence {
			s.say(", as ")
			s.number(a.Confidence, 'g', 3)
			s.say(" is asked of the mean of all promises")
		}
	}
	if n := broken(a); n > 0 {
		s.say("; it would break the SLO of ")
		s.count(uint32(n))
		if s.say(" running job"); n > 1 {
			s.say("s")
		}
	}
	return string(*s)
}

// guess says what is thought of a model that no regressor knows.
func guess(a *schemas.Advice) string {
	c := a.Chosen
	s := fmt.Sprintf("no regressor knows model %s; from %s: batch size %d on %d CPUs takes perhaps %.3g s", a.Model, names(a.Relatives), c.BatchSize, c.CPUs, *c.PredictedSeconds)
	if c.UpperBoundSeconds != nil {
		s += fmt.Sprintf(", perhaps up to %.3g s", *c.UpperBoundSeconds)
	}
	for i, p := range a.Probes {
		if i == 0 {
			s += "; to learn most, run an epoch with"
		} else {
			s += ", then"
		}
		s += fmt.Sprintf(" batch size %d on %d CPUs", p.BatchSize, p.CPUs)
	}
	return s
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

// figures says what the chosen alternative takes and reaches, and what the SLO
// leaves.
func (s *sentence) figures(a *schemas.Advice) {
	c := a.Chosen
	s.count(c.Epochs)
	s.say(" epochs in ")
	s.number(*c.PredictedSeconds, 'g', 3)
	s.say(" s")
	if c.PredictedAccuracy != nil {
		s.say(", accuracy ")
		s.number(*c.PredictedAccuracy, 'f', 4)
	}
	if a.SLOSeconds > 0 {
		s.say(" of the ")
		s.number(a.SLOSeconds-a.ElapsedSeconds, 'g', 3)
		s.say(" s that the SLO leaves")
	}
}
