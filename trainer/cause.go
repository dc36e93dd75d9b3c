package trainer

import (
	"math"
	"time"
)

// knownSlack is how many jobs before the estimated begin of a drift a known
// change may lie that is named with it: twice the usual error of the estimate.
const knownSlack = 5

// Finding says what drifted.
type Finding struct {
	Cause       Scope     // what drifted
	Since       time.Time // when the first job that showed it began
	LooseSince  time.Time // a few jobs before: the begin may be off by as many
	Ratio       float64   // measured / predicted of its jobs since then, geometric mean
	BeforeRatio float64   // what that was known to be before; 1 at first
	Jobs        int       // its jobs since then
	RestRatio   float64   // measured / predicted of all others since then; 0: there are none
	RestJobs    int
	Explained   float64   // share of the squared surprises since then that a shift of the cause alone explains, 0 to 1
	Detector    Scope     // that alarmed
	Statistic   float64   // of Page-Hinkley, in standard deviations
	Threshold   float64   // that it exceeds
	Deviation   float64   // that standard deviation, of log residuals
	WindowJobs  int       // that ADWIN holds to be as the present
	WindowSince time.Time // the first of them
	WindowCut   bool      // ADWIN dropped older ones
	Coverage    *float64  // share of its jobs' epochs since then within the regressor's bound at the usual confidence; nil: it has none

	shift float64 // mean surprise of the cause's jobs, in standard deviations
}

// tally counts surprises.
type tally struct{ n, sum float64 }

// gain is how much of the squared surprises a shift of those counted explains;
// half of it is the logarithm of the likelihood ratio.
func (t tally) gain() float64 { return t.sum * t.sum / t.n }

// guess is a scope that may have shifted, and since when it would explain most.
type guess struct {
	tally
	most  float64 // largest gain
	first int     // index of the outcome since which it is
}

func (g *guess) add(surprise float64, i int) {
	g.n++
	g.sum += surprise
	if gain := g.gain(); gain >= g.most {
		g.most, g.first = gain, i
	}
}

const (
	// modelRarity is how many times rarer a model changes than a machine.
	modelRarity = 8
	// sureMargin is by how much more than any other a cause must explain to be
	// named at once: with even odds before, it is then 12 times likelier.
	sureMargin = 5
)

// explain returns which single shift explains the surprises best, the index of
// the outcome since which it does, and whether no other explains nearly as much:
// a shift of all jobs, of one node's, or of one model's. All jobs explain a slow
// cluster best, because each node alone leaves the others unexplained; a node
// explains its own slowness best, because all jobs would share it with those that
// have none. Page-Hinkley's extremum may lie some jobs before the change; the
// likelihood tells them apart.
//
// Some node or model always explains a little more by chance. So a shift of all
// and one of some node are equally likely at first, and each node alike.
// Surprises are as large as noise makes them where they are unit.
func explain(
	outcomes []judged, nodes, models int, unit float64,
) (cause Scope, first int, sure bool) {
	guesses := map[Scope]*guess{}
	count := func(s Scope, surprise float64, i int) {
		if guesses[s] == nil {
			guesses[s] = &guess{}
		}
		guesses[s].add(surprise, i)
	}
	for i := len(outcomes) - 1; i >= 0; i-- {
		j := &outcomes[i]
		z := min(max(j.surprise/unit, -driftClip), driftClip)
		count(Scope{Kind: ScopeAll}, z, i)
		if models > 1 {
			count(Scope{ScopeModel, j.Model}, z, i)
		}
		for _, name := range j.Nodes {
			if nodes > 1 {
				count(Scope{ScopeNode, name}, z, i)
			}
		}
	}
	handicap := map[string]float64{
		ScopeNode:  2 * math.Log(float64(nodes)),
		ScopeModel: 2 * math.Log(float64(modelRarity*models)),
	}
	most, second := math.Inf(-1), math.Inf(-1)
	for s, g := range guesses {
		score := g.most - handicap[s.Kind]
		if score > most || score == most && s.Kind+s.Name < cause.Kind+cause.Name {
			second = max(second, most)
			cause, first, most = s, g.first, score
		} else {
			second = max(second, score)
		}
	}
	return cause, first, most-second > sureMargin
}

// onlyNode returns the node that all outcomes ran on, if there is just one.
func onlyNode(outcomes []judged) (name string, only bool) {
	for i := range outcomes {
		nodes := outcomes[i].Nodes
		if len(nodes) != 1 || i > 0 && nodes[0] != name {
			return "", false
		}
		name = nodes[0]
	}
	return name, true
}

// describe measures the cause and the rest since the change.
func (w *Watch) describe(cause Scope, outcomes []judged) Finding {
	f := Finding{Cause: cause, Deviation: w.deviation * w.rough.factor()}
	var own tally
	var residual, expected, rest, squares float64
	var held tally
	for i := range outcomes {
		j := &outcomes[i]
		z := min(max(j.surprise, -driftClip), driftClip)
		squares += z * z
		if !cause.touches(&j.Outcome) {
			rest += j.Residual
			f.RestJobs++
			continue
		}
		if own.n == 0 {
			f.Since = j.At
		}
		own = tally{own.n + 1, own.sum + z}
		residual, expected = residual+j.Residual, expected+j.expected
		if j.Bounded {
			held = tally{held.n + 1, held.sum + j.Held}
		}
	}
	if held.n > 0 {
		ratio := held.sum / held.n
		f.Coverage = &ratio
	}
	f.Jobs, f.shift = int(own.n), own.sum/own.n
	f.Ratio, f.BeforeRatio = math.Exp(residual/own.n), math.Exp(expected/own.n*w.deviation)
	if f.RestJobs > 0 {
		f.RestRatio = math.Exp(rest / float64(f.RestJobs))
	}
	if squares > 0 {
		f.Explained = min(1, own.gain()/squares)
	}
	return f
}
