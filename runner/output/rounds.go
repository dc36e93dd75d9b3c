package output

import (
	"regexp"
	"strconv"
	"time"

	"courier/schemas"
)

// minBlock is the minimum time between two reports of boosting rounds. Rounds can be so short that
// an event each would be more work than the training.
const minBlock = 200 * time.Millisecond

// rounds are the rounds of boosting that have not been reported. A report covers several rounds.
type rounds struct {
	first      uint32 // number of the first round as printed: 0 or 1
	last       uint32 // last reported round, counted from 1; 0: none
	reportedAt time.Time
	elapsed    float64 // printed time at the last report; 0: not printed
	block      *EpochReport
	blockTime  float64 // printed time of the block's last round
}

// Lines of XGBoost and LightGBM, and of CatBoost.
var (
	boostingRound = regexp.MustCompile(`^\[(\d+)\]\s+(?:\S.*)?[^\s:=]+[:=]\s*[-+\d]`)
	catBoostRound = regexp.MustCompile(`^(\d+):\s+(?:learn|test):`)
)

// roundLine reads a round of boosting.
func (t *text) roundLine(
	line string, tokens []token, at time.Time,
) (reports []EpochReport, isRound bool) {
	match := boostingRound.FindStringSubmatch(line)
	if match == nil {
		match = catBoostRound.FindStringSubmatch(line)
	}
	if match == nil || t.current != nil || t.hasLast && t.rounds == nil {
		return nil, false
	}
	number, err := strconv.ParseUint(match[1], 10, 32)
	if err != nil || number > schemas.MaxEpochs {
		return nil, false
	}
	var m measurements
	hasMetric := false
	for _, n := range tokens[1:] {
		kind := roundKind(n.words)
		if m.setMetric(kind, scopeOf(n.words), &n, &t.percentages) {
			hasMetric = true
		}
	}
	if !hasMetric {
		return nil, false
	}
	if t.rounds == nil {
		t.rounds = &rounds{first: min(uint32(number), 1), reportedAt: at}
	}
	t.isSeen = true
	return t.rounds.add(uint32(number), m, at), true
}

// roundKind returns what a number of a round measures. CatBoost does not print the name of its loss.
func roundKind(words []string) metricKind {
	if len(words) == 1 {
		switch words[0] {
		case "learn", "test":
			return metricLoss
		case "total":
			return metricElapsed
		}
	}
	return kindOf(words)
}

// add takes a round, and returns a report if the block has lasted long enough.
func (r *rounds) add(number uint32, m measurements, at time.Time) []EpochReport {
	done := number + 1 - r.first
	if done <= r.last || r.block != nil && done <= r.block.Epoch {
		return nil
	}
	r.block = &EpochReport{
		Epoch:    done,
		Epochs:   done - r.last,
		Loss:     m.loss,
		Accuracy: m.accuracy,
		Metric:   m.metric,
		At:       at,
	}
	r.blockTime = m.elapsed
	if m.elapsed > r.elapsed {
		r.block.Seconds = validSeconds((m.elapsed - r.elapsed) / float64(r.block.Epochs))
		if m.elapsed-r.elapsed < minBlock.Seconds() {
			return nil
		}
	} else if at.Sub(r.reportedAt) < minBlock {
		return nil
	}
	return r.release()
}

// release returns the block.
func (r *rounds) release() []EpochReport {
	if r.block == nil {
		return nil
	}
	report := *r.block
	r.last, r.reportedAt, r.elapsed, r.block = report.Epoch, report.At, r.blockTime, nil
	return []EpochReport{report}
}
