package cluster

import (
	"math"
	"time"

	"courier/schemas"
)

const (
	// foreignWindow is the time constant of the means of a node's foreign load.
	foreignWindow = 20 * time.Second
	// foreignStale is the age at which a foreign load becomes unknown again. A sample that arrives
	// later than this is ignored.
	foreignStale = time.Minute
)

// ForeignLoad is the load of a node that no job causes, as exponentially weighted means.
type ForeignLoad struct {
	CPU, IOWait RecentMean
}

// RecentMean is an exponentially weighted mean of ratios.
type RecentMean struct {
	Value float64
	At    time.Time // of the last measurement, by the server's clock; zero if there is none
}

// add adds a measurement over some seconds; an unknown ratio changes nothing.
func (m *RecentMean) add(r schemas.Ratio, seconds float64, at time.Time) {
	if !r.Known {
		return
	}
	if m.stale(at) {
		*m = RecentMean{r.Value, at}
		return
	}
	m.Value += (1 - math.Exp(-seconds/foreignWindow.Seconds())) * (r.Value - m.Value)
	m.At = at
}

func (m *RecentMean) stale(now time.Time) bool {
	return m.At.IsZero() || now.Sub(m.At) > foreignStale
}

// Ratio returns the mean rounded to tenths, or an unknown ratio if the mean is stale.
func (m *RecentMean) Ratio(now time.Time) schemas.Ratio {
	if m.stale(now) {
		return schemas.Ratio{}
	}
	return schemas.RatioOf(m.Value).Tenths()
}

// add adds a measurement over some seconds.
func (l *ForeignLoad) add(f schemas.Foreign, seconds float64, at time.Time) {
	l.CPU.add(f.CPU, seconds, at)
	l.IOWait.add(f.IOWait, seconds, at)
}
