package gateway

import (
	"math"
	"time"
)

// recentPoints is the number of points per node: ten minutes at the default interval of 2 s. With
// 8 bytes each, the points of maxNodes nodes take 39 MB.
const recentPoints = 300

// Point holds the values of a sample for a chart. Unmeasured values are absent; others are rounded
// to 1/50,000.
type Point struct {
	At          time.Time `json:"at"`                      // rounded to milliseconds
	CPURatio    *float64  `json:"cpu_ratio,omitempty"`     // 0 to 1
	IOWaitRatio *float64  `json:"io_wait_ratio,omitempty"` // 0 to 1
}

// packedPoint is a Point in 8 bytes.
type packedPoint struct {
	offset    uint32 // milliseconds since the base of its ring
	cpu, wait uint16 // ratio times ratioSteps, or noRatio
}

const (
	ratioSteps = 50_000
	noRatio    = math.MaxUint16
)

func packRatio(r *float64) uint16 {
	if r == nil {
		return noRatio
	}
	return uint16(math.Round(min(1, max(0, *r)) * ratioSteps))
}

func unpackRatio(p uint16) *float64 {
	if p == noRatio {
		return nil
	}
	r := float64(p) / ratioSteps
	return &r
}

// pointRing is a ring buffer of the last recentPoints points of a node.
type pointRing struct {
	base   time.Time
	points []packedPoint
	oldest int // index of the oldest point in a full ring
}

// add appends a point. It ignores a late sample from before the base of the ring.
func (r *pointRing) add(at time.Time, cpu, wait *float64) {
	if len(r.points) == 0 {
		r.base = at
	}
	offset := at.Sub(r.base).Milliseconds()
	if offset > math.MaxUint32 {
		offset = r.rebase(at)
	}
	if offset < 0 {
		return
	}

	p := packedPoint{offset: uint32(offset), cpu: packRatio(cpu), wait: packRatio(wait)}
	if len(r.points) == recentPoints {
		r.points[r.oldest] = p
		r.oldest = (r.oldest + 1) % recentPoints
		return
	}
	if len(r.points) == cap(r.points) { // append would allocate more than the maximum
		capacity := min(recentPoints, max(8, 2*len(r.points)))
		grown := make([]packedPoint, len(r.points), capacity)
		copy(grown, r.points)
		r.points = grown
	}
	r.points = append(r.points, p)
}

// rebase moves the base to the oldest point and returns the offset of at. It is needed after 49
// days, when offsets overflow. If at is that much later than the oldest point, it empties the ring.
func (r *pointRing) rebase(at time.Time) int64 {
	shift := r.points[r.oldest].offset
	base := r.base.Add(time.Duration(shift) * time.Millisecond)
	offset := at.Sub(base).Milliseconds()
	if offset > math.MaxUint32 {
		*r = pointRing{base: at, points: r.points[:0]}
		return 0
	}
	for i := range r.points {
		// A late point may be before the oldest.
		r.points[i].offset -= min(shift, r.points[i].offset)
	}
	r.base = base
	return offset
}

// since returns the points since an instant, in the order of their arrival.
func (r *pointRing) since(from time.Time) []Point {
	var all []Point
	for i := range r.points {
		p := r.points[(r.oldest+i)%len(r.points)]
		at := r.base.Add(time.Duration(p.offset) * time.Millisecond)
		if !at.Before(from) {
			all = append(all, Point{
				At:          at,
				CPURatio:    unpackRatio(p.cpu),
				IOWaitRatio: unpackRatio(p.wait),
			})
		}
	}
	return all
}
