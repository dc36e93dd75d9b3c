package schemas

import (
	"cmp"
	"math"
	"strconv"
)

// Hardware is what is known of a node as a machine.
type Hardware struct {
	Cores    uint32  // logical processors; 0 if unknown
	CPUModel string  // of its processors, as the system names it; "" if unknown
	Speed    float64 // operations per second of one of them, as the collector measures; 0 if unknown
	Slowest  float64 // speed that a job told of it, the least: a regressor may know it by that; 0: none did
}

// speedStep is the step of speeds, as a logarithm: about a tenth. Measurements of
// one node differ by less, so that they are one speed.
const speedStep = 0.1

// Near reports whether two values of a column may be of nodes alike: a speed is
// measured and rounded, so that nodes alike may have two.
func (c Column) Near(x, y float64) bool {
	return x == y || c == ColumnNodeSpeed && math.Abs(math.Log(x/y)) < 1.5*speedStep
}

// faster reports whether a speed is higher than another by more than measurements
// of one node differ.
func faster(speed, than float64) bool { return speed > than*math.Exp(speedStep) }

// agrees reports whether what is known of both, told of one node, may be one
// machine. Speeds contradict only where nobody knows that the CPU model is the same.
func (h Hardware) agrees(with Hardware) bool {
	return (h.Cores == 0 || with.Cores == 0 || h.Cores == with.Cores) &&
		(h.CPUModel == "" || with.CPUModel == "" || h.CPUModel == with.CPUModel) &&
		(h.Speed == 0 || with.Speed == 0 || h.CPUModel != "" && h.CPUModel == with.CPUModel || !faster(h.Speed, with.Speed) && !faster(with.Speed, h.Speed))
}

// or fills in what is unknown.
func (h Hardware) or(other Hardware) Hardware {
	slowest := cmp.Or(min(h.Slowest, other.Slowest), max(h.Slowest, other.Slowest))
	return Hardware{cmp.Or(h.Cores, other.Cores), cmp.Or(h.CPUModel, other.CPUModel), cmp.Or(h.Speed, other.Speed), slowest}
}

// Rounded returns the hardware with its speed rounded to steps of about a tenth,
// so that nodes alike have one speed, and without the slowest.
func (h Hardware) Rounded() Hardware {
	h.Speed, h.Slowest = rounded(h.Speed), 0
	return h
}

func rounded(speed float64) float64 {
	if speed <= 0 {
		return speed
	}
	return math.Exp(speedStep * math.Round(math.Log(speed)/speedStep))
}

// Fleet is what is known of the hardware of nodes: a fold over samples and jobs.
// What was told first stays until something else is told, and what one event does
// not know another may have told. Whatever disturbs the measurement of a speed makes
// it slower: of a node whose cores and CPU model stay the same one that is faster by
// a tenth is believed, and none that is slower.
type Fleet map[string]Hardware

// Sample takes what a node tells of itself, and returns what is known of it.
func (f Fleet) Sample(s *Sample) Hardware { return f.see(s.Node, s.Hardware()) }

func (f Fleet) see(node string, told Hardware) Hardware {
	if known := f[node]; known.agrees(told) {
		if faster(told.Speed, known.Speed) {
			known.Speed = told.Speed
		}
		told = known.or(told)
	}
	f[node] = told
	return told
}

// See takes what an event of a job tells of its nodes, in their order, and returns
// what is known of them. smallest are the processors of the smallest of them, 0 if
// unknown: all that most events tell.
func (f Fleet) See(nodes []string, told []Hardware, smallest uint32) []Hardware {
	all := make([]Hardware, len(nodes))
	for i, name := range nodes {
		var h Hardware
		if i < len(told) {
			h = told[i]
		}
		if h.Cores == 0 && len(nodes) == 1 {
			h.Cores = smallest
		}
		h.Slowest = h.Speed
		all[i] = f.see(name, h)
		all[i].Cores = cmp.Or(all[i].Cores, smallest)
	}
	return all
}

// Of returns what is known of some nodes, in their order.
func (f Fleet) Of(nodes []string) []Hardware {
	all := make([]Hardware, len(nodes))
	for i, name := range nodes {
		all[i] = f[name]
	}
	return all
}

// Complete returns what is known of a node at the end of the fold, where that agrees
// with what was known of it at some time; what was known, where it was another machine.
func (f Fleet) Complete(node string, h Hardware) Hardware {
	if known := f[node]; known.agrees(h) {
		return known.or(h)
	}
	return h
}

// Fuller reports whether some processes on a node slow a job down more than others
// on another of its nodes: by processes per core where both sizes are known, of
// equals on the slower node.
func Fuller(processes float64, on Hardware, others float64, other Hardware) bool {
	if on.Cores > 0 && other.Cores > 0 {
		processes, others = processes/float64(on.Cores), others/float64(other.Cores)
	}
	if processes != others {
		return processes > others
	}
	return on.Speed > 0 && on.Speed < other.Speed
}

// NodeType names what makes nodes alike: the CPU model and the cores where the CPU model is known,
// else the speed and the cores. It is "" where neither is known.
func (h Hardware) NodeType() string {
	var room [64]byte // every decision asks for it
	b := room[:0]
	switch {
	case h.CPUModel != "":
		b = append(b, h.CPUModel...)
	case h.Speed > 0:
		b = append(strconv.AppendFloat(b, rounded(h.Speed), 'g', 3, 64), " operations/s"...)
	default:
		return ""
	}
	return string(append(strconv.AppendUint(append(b, ", "...), uint64(h.Cores), 10), " cores"...))
}
