package trainer

const (
	// driftDelta is the shift that Page-Hinkley tolerates, in standard deviations
	// of the calibration (models: drift).
	driftDelta = 0.4
	// driftClip bounds one job's residual, in standard deviations: no single job,
	// however odd, is an alarm.
	driftClip = 8
)

// PageHinkley looks in both directions for a lasting shift of standardised
// residuals from 0 (Page 1954). The zero value has seen nothing.
type PageHinkley struct {
	up, down excursion
}

// excursion is the sum of what exceeded the tolerated shift since its extremum,
// where it was 0 last: there the shift began, if there is one.
type excursion struct {
	sum   float64
	first int // number of the first residual behind the extremum
}

func (e *excursion) add(z float64, number int) {
	if e.sum == 0 {
		e.first = number
	}
	e.sum = max(0, e.sum+z-driftDelta)
}

// Add takes the next residual, in standard deviations, and the number by which
// the caller knows it; numbers rise.
func (p *PageHinkley) Add(z float64, number int) {
	z = min(max(z, -driftClip), driftClip)
	p.up.add(z, number)
	p.down.add(-z, number)
}

// Alarm returns the number of the first residual of a shift, the sum that shows
// it, in standard deviations, and whether it exceeds lambda.
func (p *PageHinkley) Alarm(lambda float64) (first int, sum float64, alarm bool) {
	e := p.up
	if p.down.sum > e.sum {
		e = p.down
	}
	return e.first, e.sum, e.sum > lambda
}
