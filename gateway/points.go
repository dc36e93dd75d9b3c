package gateway

import (
	"math"
	"slices"
	"time"
)

// maxRecentPoints is the number of points per node: ten minutes at the default interval of 2 s. With
// 16 bytes each, the points of maxNodes nodes take 79 MB.
const maxRecentPoints = 300

// Point holds the values of a sample for a chart. Unmeasured values are absent; others are rounded
// to 1/50,000.
type Point struct {
	At          time.Time `json:"at"`                      // rounded to milliseconds
	CPURatio    *float64  `json:"cpu_ratio,omitempty"`     // 0 to 1
	IOWaitRatio *float64  `json:"io_wait_ratio,omitempty"` // 0 to 1
}

// packedPoint is a Point in 16 bytes.
type packedPoint struct {
	at        int64  // milliseconds since 1970
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
	return new(float64(p) / ratioSteps)
}

// recentPoints are the last points of a node, in the order of their arrival.
type recentPoints []packedPoint

// add appends a point, and drops the oldest beyond maxRecentPoints.
func (r *recentPoints) add(at time.Time, cpu, wait *float64) {
	switch len(*r) {
	case 0:
		*r = make(recentPoints, 0, maxRecentPoints)
	case maxRecentPoints:
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, packedPoint{at.UnixMilli(), packRatio(cpu), packRatio(wait)})
}

// since returns the points since an instant.
func (r recentPoints) since(from time.Time) []Point {
	var all []Point
	for _, p := range r {
		at := time.UnixMilli(p.at).UTC()
		if !at.Before(from) {
			all = append(all, Point{At: at, CPURatio: unpackRatio(p.cpu), IOWaitRatio: unpackRatio(p.wait)})
		}
	}
	return all
}
