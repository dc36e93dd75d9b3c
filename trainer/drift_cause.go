package trainer

import (
	"math"
	"time"
)

// knownSlack is the number of jobs before the estimated begin of a drift in which a known change is
// listed with the drift: twice the usual error of the estimate.
const knownSlack = 5

// Finding describes a drift. Figures "since then" begin at Since.
type Finding struct {
	Cause       DriftScope // jobs that drifted
	Since       time.Time  // begin of the first drifted job
	LooseSince  time.Time  // a few jobs earlier, because the begin is an estimate
	Ratio       float64    // measured / predicted of the cause's jobs since then, geometric mean
	BeforeRatio float64    // the known ratio before; 1 at first
	Jobs        int        // the cause's jobs since then
	RestRatio   float64    // measured / predicted of all other jobs since then; 0: none
	RestJobs    int
	Explained   float64    // share of squared surprises that the shift explains, 0 to 1
	Detector    DriftScope // scope of the detector that raised the alarm
	Statistic   float64    // Page-Hinkley sum, in standard deviations
	Threshold   float64    // threshold of the detector
	Deviation   float64    // standard deviation of log residuals
	WindowJobs  int        // jobs in ADWIN's window
	WindowSince time.Time  // begin of the first of them
	WindowCut   bool       // ADWIN dropped older jobs

	// Coverage is the share of epochs of the cause's jobs since then within the bound at the
	// default confidence; nil if the regressor has no bound.
	Coverage *float64
	shift    float64 // mean surprise of the cause's jobs, in standard deviations
}

// surpriseSum adds up surprises: residuals less their expected values.
type surpriseSum struct{ n, sum float64 }

// gain returns the sum of squared surprises that a shift explains. Half of it is the logarithm of
// the likelihood ratio.
func (t surpriseSum) gain() float64 { return t.sum * t.sum / t.n }

// causeScore rates a scope as the cause of an alarm.
type causeScore struct {
	surpriseSum
	most  float64 // largest gain
	first int     // index of the job since which the shift explains most
}

func (g *causeScore) add(surprise float64, i int) {
	g.n++
	g.sum += surprise
	if gain := g.gain(); gain >= g.most {
		g.most, g.first = gain, i
	}
}

const (
	// modelRarity is the assumed ratio of changes of nodes to changes of models.
	modelRarity = 8
	// sureMargin is the lead over the next cause, in gain, at which a cause is named immediately:
	// with equal prior odds, it is then 12 times as likely.
	sureMargin = 5
)

// explain returns the scope whose single shift explains the surprises best, the index of the
// first job with this shift, and whether its lead is clear.
//
// A slow cluster is explained best by all jobs, because each single node leaves the others
// unexplained. A slow node is explained best by that node, because all jobs would include those
// without surprise. The extremum of Page-Hinkley may lie some jobs before the change; the
// likelihood locates it.
//
// By chance some node or model always explains a little more. Therefore the prior gives "all jobs"
// and "some node" equal odds, and each node an equal share. unit is the standard deviation of
// surprises by noise alone.
func explain(
	outcomes []judgedResidual, nodes, models int, unit float64,
) (cause DriftScope, first int, sure bool) {
	guesses := map[DriftScope]*causeScore{}
	count := func(s DriftScope, surprise float64, i int) {
		if guesses[s] == nil {
			guesses[s] = &causeScore{}
		}
		guesses[s].add(surprise, i)
	}
	for i := len(outcomes) - 1; i >= 0; i-- {
		j := &outcomes[i]
		z := min(max(j.surprise/unit, -driftClip), driftClip)
		count(DriftScope{Kind: ScopeAll}, z, i)
		if models > 1 {
			count(DriftScope{ScopeModel, j.Model}, z, i)
		}
		for _, name := range j.Nodes {
			if nodes > 1 {
				count(DriftScope{ScopeNode, name}, z, i)
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

// onlyNode returns the node of all jobs, if they ran on one node.
func onlyNode(outcomes []judgedResidual) (name string, only bool) {
	for i := range outcomes {
		nodes := outcomes[i].Nodes
		if len(nodes) != 1 || i > 0 && nodes[0] != name {
			return "", false
		}
		name = nodes[0]
	}
	return name, true
}

// describe measures the cause and all other jobs since the change.
func (w *Watch) describe(cause DriftScope, outcomes []judgedResidual) Finding {
	f := Finding{Cause: cause, Deviation: w.deviation * w.noise.factor()}
	var own surpriseSum
	var residual, expected, rest, squares float64
	var within surpriseSum
	for i := range outcomes {
		j := &outcomes[i]
		z := min(max(j.surprise, -driftClip), driftClip)
		squares += z * z
		if !cause.covers(&j.JobResidual) {
			rest += j.Residual
			f.RestJobs++
			continue
		}
		if own.n == 0 {
			f.Since = j.At
		}
		own = surpriseSum{own.n + 1, own.sum + z}
		residual, expected = residual+j.Residual, expected+j.expected
		if j.HasBound {
			within = surpriseSum{within.n + 1, within.sum + j.WithinBound}
		}
	}
	if within.n > 0 {
		ratio := within.sum / within.n
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
