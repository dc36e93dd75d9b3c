package advisor

import (
	"slices"

	"courier/regress/evidence"
	"courier/schemas"
)

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
