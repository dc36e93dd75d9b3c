// Package speedtest has a training whose step times are known, for tests of policies.
package speedtest

import "courier/policy/speed"

// Facts are the properties of the training that are known before it runs.
var Facts = speed.Facts{
	HasServers: true, SamplesPerWorker: 64, ModelBytes: 60e6, BytesPerSecond: 300e6,
}

// Truth is how the training runs.
var Truth = &speed.KnownModel{
	Facts: Facts, Coefficients: speed.Coefficients{0.1, 0.03, 0.03, 1, 0.004, 0.006}, Knee: 4,
}

// Largest bounds the shapes of the training.
var Largest = speed.Shape{Workers: 10, WorkerCores: 10, Servers: 5, ServerCores: 5}

// Measured returns the exact step time of each shape.
func Measured(shapes ...speed.Shape) (seen []speed.ShapeTime) {
	for _, s := range shapes {
		seen = append(seen, speed.ShapeTime{Shape: s, StepSeconds: Truth.StepSeconds(s), Reports: 3})
	}
	return seen
}
