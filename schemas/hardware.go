package schemas

import (
	"cmp"
	"fmt"
	"math"
)

// Hardware describes a node as a machine.
type Hardware struct {
	Cores    uint32  // logical processors; 0 if unknown
	CPUModel string  // name of the processor model as the system reports it; "" if unknown
	Speed    float64 // operations per second of one processor by the collector's measure; 0 if unknown
}

// speedStep is the step to which the logarithm of a speed is rounded, about a tenth. Measurements
// of one node differ by less.
const speedStep = 0.1

// maxSpeed is a speed that no processor reaches, in operations per second.
const maxSpeed = 1e15

// faster reports whether a speed exceeds another by more than the noise of the measurement.
func faster(speed, than float64) bool { return speed > than*math.Exp(speedStep) }

// compatible reports whether two reports about one node may describe the same machine. Different
// speeds are compatible if both have the same known CPU model.
func (h Hardware) compatible(other Hardware) bool {
	sameCores := h.Cores == 0 || other.Cores == 0 || h.Cores == other.Cores
	sameModel := h.CPUModel == "" || other.CPUModel == "" || h.CPUModel == other.CPUModel
	sameSpeed := h.Speed == 0 || other.Speed == 0 ||
		h.CPUModel != "" && h.CPUModel == other.CPUModel ||
		!faster(h.Speed, other.Speed) && !faster(other.Speed, h.Speed)
	return sameCores && sameModel && sameSpeed
}

// or returns the hardware with unknown properties taken from other.
func (h Hardware) or(other Hardware) Hardware {
	return Hardware{
		Cores:    cmp.Or(h.Cores, other.Cores),
		CPUModel: cmp.Or(h.CPUModel, other.CPUModel),
		Speed:    cmp.Or(h.Speed, other.Speed),
	}
}

// Rounded returns the hardware with its speed rounded to steps of about a tenth, so that identical
// nodes have one speed.
func (h Hardware) Rounded() Hardware {
	h.Speed = rounded(h.Speed)
	return h
}

func rounded(speed float64) float64 {
	if speed <= 0 {
		return speed
	}
	return math.Exp(speedStep * math.Round(math.Log(speed)/speedStep))
}

// MoreLoaded reports whether processes on one node of a job slow it down more than other processes
// on another of its nodes. It compares processes per core if both sizes are known, and prefers the
// slower node on a tie.
func MoreLoaded(processes float64, on Hardware, others float64, other Hardware) bool {
	if on.Cores > 0 && other.Cores > 0 {
		processes, others = processes/float64(on.Cores), others/float64(other.Cores)
	}
	if processes != others {
		return processes > others
	}
	return on.Speed > 0 && on.Speed < other.Speed
}

// NodeType returns the name of the node's type: the CPU model and the cores, or the speed and the
// cores if the CPU model is unknown, or "" if both are unknown.
func (h Hardware) NodeType() string {
	switch {
	case h.CPUModel != "":
		return fmt.Sprintf("%s, %d cores", h.CPUModel, h.Cores)
	case h.Speed > 0:
		return fmt.Sprintf("%.3g operations/s, %d cores", rounded(h.Speed), h.Cores)
	}
	return ""
}
