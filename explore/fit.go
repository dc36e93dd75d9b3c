package explore

import (
	"context"
	"time"

	"courier/regress/evidence"
)

// fitted predicts the cells from the runs so far, as the advisor would.
type fitted struct {
	o         *Options
	predictor *evidence.Predictor
	runs      map[Cell]int
}

// fit fits the runs so far.
func (s *Study) fit(ctx context.Context) (*fitted, error) {
	f := &fitted{o: &s.o, runs: map[Cell]int{}}
	var runs []evidence.Run
	for i := range s.records {
		r := &s.records[i]
		f.runs[r.Cell]++
		runs = append(runs, s.o.evidenceRun(r))
	}
	h, err := evidence.Fit(ctx, runs, evidence.Options{})
	if err != nil {
		return nil, err
	}
	f.predictor, err = evidence.Compile(h)
	return f, err
}

// cellPrediction is the predicted time and accuracy of a cell.
type cellPrediction struct {
	Cell
	runs     int
	time     evidence.Time
	accuracy evidence.Accuracy
}

// cell predicts a cell.
func (f *fitted) cell(c Cell) cellPrediction {
	at := f.o.configuration(c)
	return cellPrediction{
		Cell:     c,
		runs:     f.runs[c],
		time:     f.predictor.Time(at, f.o.Epochs),
		accuracy: f.predictor.Accuracy(at, f.o.Epochs),
	}
}

// seconds returns the predicted time of a run of a cell; 0 if it is unknown.
func (f *fitted) seconds(c Cell) time.Duration {
	t := f.cell(c).time
	if !t.Known() {
		return 0
	}
	return time.Duration(t.Median() * float64(time.Second))
}

// meets returns the probability that a run meets an SLO and, if there is one, the target accuracy.
func (f *fitted) meets(p *cellPrediction, slo time.Duration) float64 {
	if !p.time.Known() {
		return 0
	}
	probability := p.time.Probability(slo.Seconds())
	if f.o.TargetAccuracy > 0 {
		probability *= f.predictor.Reaches(f.o.configuration(p.Cell), f.o.TargetAccuracy, f.o.Epochs)
	}
	return probability
}

// isPromisable reports whether a promise may rest on a prediction.
func (f *fitted) isPromisable(p *cellPrediction, slo time.Duration) bool {
	return p.time.Support.Promisable() && p.accuracy.Known && f.meets(p, slo) >= f.o.Confidence
}

// conditions returns the cells that compete for one answer: those with the same number of
// concurrent jobs.
func (o *Options) conditions() [][]Cell {
	var all [][]Cell
	for _, jobs := range o.Factors.Jobs {
		f := o.Factors
		f.Jobs = []int{jobs}
		all = append(all, f.Cells())
	}
	return all
}

// choose returns the promisable cell with the highest expected accuracy; of equal ones the fastest.
// Without a promisable cell it returns the most probable one. The advisor also prefers a higher
// probability among the promisable ones.
func (f *fitted) choose(cells []Cell, slo time.Duration) (best cellPrediction, isPromised bool) {
	probability := -1.0
	for _, c := range cells {
		p := f.cell(c)
		promisable := f.isPromisable(&p, slo)
		switch {
		case promisable && !isPromised,
			promisable && isBetter(&p, &best):
			best, isPromised = p, true
		case !isPromised && !promisable && f.meets(&p, slo) > probability:
			best, probability = p, f.meets(&p, slo)
		}
	}
	return best, isPromised
}

// isBetter compares two promisable cells.
func isBetter(a, b *cellPrediction) bool {
	if a.accuracy.Mean != b.accuracy.Mean {
		return a.accuracy.Mean > b.accuracy.Mean
	}
	return a.time.Median() < b.time.Median()
}
