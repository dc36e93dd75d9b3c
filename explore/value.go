package explore

import (
	"cmp"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// mostValuable returns the block with the highest expected value of its information: by how much it
// is expected to raise the accuracy of the advice, summed over the SLOs. First, the smallest and
// the largest batch size run once with each combination of the other factors, because nothing can be
// promised for a combination that never ran.
func (s *Study) mostValuable(f *fitted) (b Block, gain float64, reason string) {
	left := s.nextReplications()
	if len(left) == 0 {
		return Block{}, 0, s.allMeasured("the full design")
	}
	ends := s.o.Factors
	ends.BatchSizes = ends.ends().BatchSizes
	var first []Block
	for _, c := range ends.Cells() {
		if b, ok := left[c]; ok && f.runs[c] == 0 {
			first = append(first, b)
		}
	}
	if len(first) > 0 {
		return s.earliest(first), 0, ""
	}

	gains := map[Cell]float64{}
	for _, cells := range s.o.conditions() {
		for _, slo := range s.o.SLOs {
			f.addGains(gains, cells, slo)
		}
	}
	for _, block := range left {
		gain = max(gain, gains[block.Cell])
	}
	if gain < minGain {
		return Block{}, 0, "no further run is expected to improve the advice"
	}
	var best []Block
	for _, block := range left {
		if gains[block.Cell] == gain {
			best = append(best, block)
		}
	}
	return s.earliest(best), gain, ""
}

// nextReplications returns the next block of each cell that has one.
func (s *Study) nextReplications() map[Cell]Block {
	left := map[Cell]Block{}
	for _, b := range s.blocks {
		if _, found := left[b.Cell]; !found && !s.isDone(b) {
			left[b.Cell] = b
		}
	}
	return left
}

// earliest returns the block that is first in the random order of the design.
func (s *Study) earliest(blocks []Block) Block {
	order := func(b Block) int { return slices.Index(s.blocks, b) }
	return slices.MinFunc(blocks, func(a, b Block) int { return cmp.Compare(order(a), order(b)) })
}

// addGains adds the expected gain of one more run of each cell for one SLO.
//
// A run of another cell than the chosen one may show that it meets the SLO at a higher accuracy: the
// probability that it meets the SLO, times the expected excess of its accuracy. A run of the chosen
// cell may show that it misses the SLO: the probability of that, times the accuracy that another
// choice would keep. The k-th run of a cell moves its mean by about 1/k of a deviation.
func (f *fitted) addGains(gains map[Cell]float64, cells []Cell, slo time.Duration) {
	chosen, isPromised := f.choose(cells, slo)
	value := 0.0
	if isPromised {
		value = chosen.accuracy.Mean
	}
	for _, c := range cells {
		p := f.cell(c)
		inTime := 0.0
		if p.time.Known() {
			inTime = p.time.Probability(slo.Seconds())
		}
		gain := 0.0
		if isPromised && c == chosen.Cell {
			gain = (1 - inTime) * value
		} else {
			gain = inTime * f.excess(&p, value)
		}
		gains[c] += gain / float64(p.runs+1)
	}
}

// excess returns the expected accuracy of a cell above a value: the expected improvement of a normal
// distribution (Jones et al. 1998). An accuracy that was never measured is at the highest measured one,
// give or take unknownAccuracySpread.
func (f *fitted) excess(p *cellPrediction, value float64) float64 {
	const unknownAccuracySpread, confidence = 0.05, 0.95
	mean, spread := p.accuracy.Highest, unknownAccuracySpread
	if p.accuracy.Known {
		mean = p.accuracy.Mean
		low, high := p.accuracy.Interval(confidence)
		spread = (high - low) / (2 * distuv.UnitNormal.Quantile((1+confidence)/2))
	}
	if spread <= 0 {
		return max(0, mean-value)
	}
	z := (mean - value) / spread
	return max(0, (mean-value)*distuv.UnitNormal.CDF(z)+spread*distuv.UnitNormal.Prob(z))
}
