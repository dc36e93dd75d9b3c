package advisor

import (
	"math"

	"courier/regress"
	"courier/schemas"
)

// memory remembers what regressors said of some features: forecasts meet the same
// few settings and loads again and again, in one decision and from one to the next,
// and a regressor never changes its word. One goroutine uses it at a time.
type memory struct {
	row  [maxColumns]float64 // room for the row of a prediction
	said [remembered]saying
}

// remembered is how many predictions there is room for, a power of two.
const remembered = 512

// saying is what a regressor said of some features.
type saying struct {
	by uint64 // its serial number; 0: nobody said anything yet
	of schemas.Features
	regress.Prediction
	ok bool
}

// place is where a regressor's word on some features would be.
func (m *memory) place(r *Regressor, f *schemas.Features) *saying {
	const prime = 0x9e3779b97f4a7c15
	key := (r.serial*31+uint64(f.BatchSize))*31 + uint64(f.CPUs)
	key = (key*31+uint64(f.EpochsDone))*prime ^ math.Float64bits(f.Load.Processes)
	key = key*prime ^ math.Float64bits(f.Load.ConcurrentJobs)
	key = key*prime ^ math.Float64bits(f.ModelCode)
	key = key*prime ^ math.Float64bits(f.Node.Speed)
	key = key*prime ^ math.Float64bits(f.Load.ForeignCPURatio.Value)
	key = key*prime ^ math.Float64bits(f.Load.ForeignIOWaitRatio.Value)
	return &m.said[key*prime>>(64-9)%remembered]
}
