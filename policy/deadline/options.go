package deadline

import (
	"cmp"
	"time"
)

// Options are the parameters of the policy. A zero field means the documented default. The defaults
// were chosen on seven traces of ElasticFlow together, and on six of them with a half to an eighth
// of the GPUs; see docs/reference/benchmarks-policies.md.
type Options struct {
	// MomentInterval is the distance of moments that plans expect: rates are lowered by the pause
	// per interval. Default: 20 minutes.
	MomentInterval time.Duration
	// PayBack is the time in which new shares must gain more than their moment costs. Default: 200
	// seconds.
	PayBack time.Duration
	// ReviewInterval is the time to the next decision while the shares differ from the plan.
	// Default: 1 minute.
	ReviewInterval time.Duration
	// Margin is subtracted from the time to a deadline, at most half of the job's slack. Default: 2
	// minutes.
	Margin time.Duration
	// Urgent is how long a job must be able to wait for more units. A job that cannot gets them
	// before others. Default: 15 minutes.
	Urgent time.Duration

	// NoHeadroom lets admission fill the capacity. By default it leaves 6.4 units free, but 0.1 to 0.4
	// of the capacity, because jobs hold whole numbers of units. Jobs that can run side by side until
	// their ends need none.
	NoHeadroom bool
}

// costLimit is the cost above which a job is refused although it fits: its unit-seconds, relative to
// the median of recent submissions, times the fourth power of the utilization until its deadline.
const costLimit = 1

func (o Options) withDefaults() Options {
	o.MomentInterval = cmp.Or(o.MomentInterval, 20*time.Minute)
	o.PayBack = cmp.Or(o.PayBack, 200*time.Second)
	o.ReviewInterval = cmp.Or(o.ReviewInterval, time.Minute)
	o.Margin = cmp.Or(o.Margin, 2*time.Minute)
	o.Urgent = cmp.Or(o.Urgent, 15*time.Minute)
	return o
}

// The headroom without Options.NoHeadroom.
const (
	headroomUnits                      = 6.4
	minHeadroomRatio, maxHeadroomRatio = 0.1, 0.4
)

// headroomRatio returns the ratio of a capacity that admission leaves free.
func (o *Options) headroomRatio(units int) float64 {
	if o.NoHeadroom {
		return 0
	}
	return min(max(headroomUnits/float64(units), minHeadroomRatio), maxHeadroomRatio)
}
