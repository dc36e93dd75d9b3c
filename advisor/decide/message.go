package decide

import (
	"cmp"
	"fmt"
	"slices"

	"courier/advisor/cluster"
	"courier/regress/evidence"
	"courier/schemas"
)

// answer is an advice with the candidates that it was chosen from.
type answer struct {
	*problem
	advice     *schemas.Advice
	candidates []candidate
}

// message describes the advice in a sentence.
func (a *answer) message() string {
	c := a.advice.Chosen
	if c.PredictedSeconds == nil {
		return a.unknownTime()
	}
	before, verb := "", ": "
	switch a.advice.Decision {
	case schemas.BestEffort:
		before, verb = a.noAlternative()+"; ", " comes closest: "
	case schemas.Exploring:
		verb = ": perhaps "
	}
	text := before + batchAndShape(c) + verb + a.figures() + a.certainty()
	if n := brokenCount(a.advice); n > 0 {
		text += "; it would break the SLO of " + schemas.FormatCount(uint64(n), "running job")
	}
	return text
}

// batchAndShape describes the batch size, workers and CPUs of an alternative.
func batchAndShape(alt *schemas.Alternative) string {
	return schemas.FormatBatchSize(alt.BatchSize) + " on " + schemas.FormatShape(alt.Workers, alt.CPUs)
}

// figures describes the predicted time and accuracy of the chosen alternative, and the time left of
// the SLO.
func (a *answer) figures() string {
	c := a.advice.Chosen
	text := schemas.FormatCount(uint64(c.Epochs), "epoch")
	if c.ExpectedEpochs > 0 {
		text = fmt.Sprintf("stops after about %d of %s,", c.ExpectedEpochs, text)
	}
	text += " in " + schemas.FormatSeconds(*c.PredictedSeconds)
	if a.Request.SLO > 0 {
		text += remaining(*c.PredictedSeconds, a.Left())
	}
	if c.PredictedAccuracy != nil {
		text += fmt.Sprintf(", accuracy %.4f", *c.PredictedAccuracy)
	}
	return text
}

// remaining describes the seconds left of the SLO, compared with the seconds of the job.
func remaining(seconds, left float64) string {
	switch {
	case left < 0:
		return fmt.Sprintf(", but the SLO ended %s ago", schemas.FormatSeconds(-left))
	case seconds > left:
		return fmt.Sprintf(", %s more than the %s that the SLO leaves",
			schemas.FormatSeconds(seconds-left), schemas.FormatSeconds(left))
	}
	return fmt.Sprintf(" of the %s that the SLO leaves", schemas.FormatSeconds(left))
}

// certainty describes the probability of the chosen alternative, or why it is unknown.
func (a *answer) certainty() string {
	c, target := a.advice.Chosen, a.Request.TargetAccuracy
	switch {
	case a.advice.Decision == schemas.Exploring:
		return "; nothing can be promised, because " + a.lacking()
	case a.advice.Decision == schemas.Weighted && c.AccuracyProbability != nil:
		if a.candidates[0].neverReached(target) {
			return "; " + a.neverReached()
		}
		return fmt.Sprintf(", accuracy %.4g reached with probability %s",
			target, schemas.FormatProbability(*c.AccuracyProbability))
	case c.Probability == nil:
		return ""
	case c.SLOProbability != nil && *c.Probability < unreachableTarget:
		return ", SLO met with probability " + schemas.FormatProbability(*c.SLOProbability)
	}
	return fmt.Sprintf(", SLO met%s with probability %s",
		reached(a.Question, a.advice), schemas.FormatProbability(*c.Probability))
}

// neverReached reports that no run of the model has reached the target accuracy.
func (a *answer) neverReached() string {
	return fmt.Sprintf("no run of %s has reached accuracy %.4g, the highest was %.4g",
		a.modelText(), a.Request.TargetAccuracy, a.candidates[0].highestAccuracy)
}

// lacking describes why a chosen alternative with a known time cannot be promised.
func (a *answer) lacking() string {
	c := a.advice.Chosen
	switch {
	case c.Extrapolated:
		return a.modelText() + ran(a.missing(c))
	case c.Reason == reasonOnce:
		return fmt.Sprintf("too few runs of %s have reached accuracy %.4g", a.modelText(), a.Request.TargetAccuracy)
	case !a.hasAccuracy:
		return "no accuracy of " + a.modelText() + " has been measured"
	}
	if from := a.knownFrom(c.BatchSize); from > 0 {
		return fmt.Sprintf("its accuracy is known from epoch %d on", from)
	}
	return "its accuracy with this batch size is not known"
}

// ran describes which runs of a model exist in place of the missing ones.
func ran(m evidence.Missing) string {
	const onType = " ran on this node type "
	switch isOne := m.Low == m.High; m.Lacks {
	case evidence.LacksConfigurations:
		return fmt.Sprintf(" ran in %s only", schemas.FormatCount(uint64(m.High), "configuration"))
	case evidence.LacksCPUs:
		if isOne {
			return onType + fmt.Sprintf("with %s only", schemas.FormatCPUs(uint32(m.Low)))
		}
		return onType + fmt.Sprintf("with %d to %d CPUs", m.Low, m.High)
	case evidence.LacksBatchSize:
		if isOne {
			return onType + fmt.Sprintf("with batch size %d only", m.Low)
		}
		return onType + fmt.Sprintf("with batch sizes %d to %d", m.Low, m.High)
	case evidence.LacksNeighbours:
		return onType + fmt.Sprintf("with batch sizes %d and %d, but none between", m.Low, m.High)
	case evidence.LacksLoad:
		switch {
		case m.High == 1:
			return onType + "only alone"
		case m.High > 0 && isOne:
			return onType + fmt.Sprintf("with %d jobs at once", m.Low)
		case m.High > 0:
			return onType + fmt.Sprintf("with %d to %d jobs at once", m.Low, m.High)
		}
		return " ran on this node type, but never under such a load"
	}
	return " ran too few times around that, or with times that differ too much"
}

// unknownTime describes what to run for a model whose times are unknown.
func (a *answer) unknownTime() string {
	c, next := a.advice.Chosen, ": run it with "
	runs := 0
	if r := a.r.EpochTime; r != nil {
		runs = r.evidence.Epochs(a.configuration(c.BatchSize, c.CPUs), 1).Counts.Model
	}
	var text string
	node := a.sim.nodes[a.at[0]].name
	switch ran := schemas.FormatCount(uint64(runs), "run"); {
	case runs > 0 && node != "":
		text = fmt.Sprintf("%s has %s, but none on a node like %s", a.modelText(), ran, node)
	case runs > 0: // it was placed nowhere
		text = fmt.Sprintf("%s has %s, but no live node has %s",
			a.modelText(), ran, schemas.FormatCPUs(c.Processes()))
		next = ": on such a node, run it with "
	case a.loaders == 0 &&
		slices.ContainsFunc(a.Tried, func(t cluster.BatchAndShape) bool { return t.Workers == c.Workers }):
		text = fmt.Sprintf("nothing has been learned yet about %s, which has run", a.modelText())
	default:
		text = "nothing is known yet about " + a.unknownModel()
	}
	return text + next + batchAndShape(c) + " to learn from it"
}

// noAlternative describes why no alternative can be promised.
func (a *answer) noAlternative() string {
	target, required := a.Request.TargetAccuracy, a.Request.Confidence
	switch {
	case target > 0 && a.hasAccuracy && a.candidates[0].neverReached(target):
		return a.neverReached()
	case target > 0 && a.hasAccuracy:
		return fmt.Sprintf("no alternative meets the SLO and reaches accuracy %.4g with probability %.4g: %s",
			target, required, a.targetObstacle())
	case required > maxProbability:
		return fmt.Sprintf("no probability above %v is predicted, and %v is required",
			maxProbability, required)
	}
	return fmt.Sprintf("no alternative meets the SLO with probability %.4g", required)
}

// targetObstacle describes why SLO and target accuracy cannot be promised together.
func (a *answer) targetObstacle() string {
	routes, ever := a.routes(a.candidates, a.Request.Confidence)
	best := quickest(routes)
	switch {
	case len(routes) == 0:
		return fmt.Sprintf("however long it runs, the accuracy is reached with probability %s at most",
			schemas.FormatProbability(ever))
	case best == nil:
		fewest := slices.MinFunc(routes, func(x, y route) int { return cmp.Compare(x.epochs, y.epochs) })
		return fmt.Sprintf("the accuracy takes %s at least, more than the %d requested",
			fewest.text(), a.EpochsDone()+a.epochsLeft())
	case best.seconds > a.Left():
		return fmt.Sprintf("the accuracy takes %s at least (%s)",
			schemas.FormatSeconds(best.seconds), best.text())
	}
	c := a.advice.Chosen
	if c.SLOProbability == nil || c.AccuracyProbability == nil {
		return "they are too unlikely together"
	}
	return fmt.Sprintf("at best the SLO is met with probability %s and the accuracy reached with %s",
		schemas.FormatProbability(*c.SLOProbability), schemas.FormatProbability(*c.AccuracyProbability))
}

// text describes the epochs and the batch size of a route.
func (r *route) text() string {
	return schemas.FormatCount(uint64(r.epochs), "epoch") + " with " + schemas.FormatBatchSize(r.batch)
}

// modelText returns the model of the question and its dataset. It mentions a missing dataset only if
// other runs of the model have one.
func (a *answer) modelText() string {
	haveDataset := func(name string) bool { return name != "" }
	return a.job.text(slices.ContainsFunc(a.r.EpochTime.datasetsOf(a.job.model), haveDataset))
}

// text returns a model and its dataset. It mentions a missing dataset if other runs have one.
func (t trainedOn) text(othersHave bool) string {
	switch {
	case t.dataset != "":
		return "model " + t.model + " on dataset " + t.dataset
	case othersHave:
		return "model " + t.model + " without a dataset"
	}
	return "model " + t.model
}

// unknownModel returns the model of the question, of which no times are known, and its dataset.
func (a *answer) unknownModel() string {
	if a.hasTime {
		return a.timed.text(false)
	}
	return a.timed.textAmong(a.r.EpochTime.datasetsOf(a.timed.model))
}

// textAmong returns a model and its dataset, and the sorted datasets of its runs, because the user may have
// meant one of them. "" stands for runs without a dataset.
func (t trainedOn) textAmong(others []string) string {
	if len(others) == 0 {
		return t.text(false)
	}
	listed, hint := slices.Clone(others), ""
	if listed[0] == "" {
		listed[0] = "none"
	}
	if t.dataset == "" {
		hint = "; name one with --dataset"
	}
	return fmt.Sprintf("%s (datasets of its runs: %s%s)", t.text(true), schemas.FormatList(listed), hint)
}
