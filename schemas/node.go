package schemas

import (
	"cmp"
	"fmt"
)

// Sample is node.<node>.sample: one measurement of a node. Rates and ratios are means over the
// interval before At. Values that the system does not provide are absent. A message may hold an array of
// samples, oldest first.
type Sample struct {
	Stamp
	// Name of the node.
	Node string `json:"node" ch:"node"`
	// Distinguishes two machines with the same name.
	BootID string `json:"boot_id" ch:"boot_id"`
	// Number of the sample of this collector, from 1.
	Number uint64 `json:"number" ch:"number"`
	// Interval that the means cover.
	IntervalSeconds float64 `json:"interval_seconds" ch:"interval_seconds"`
	// Logical processors.
	Cores uint32 `json:"cores" ch:"cores"`

	// Busy share of all processors, 0 to 1; IO-wait is not busy.
	CPURatio *float64 `json:"cpu_ratio,omitempty" ch:"cpu_ratio"`
	// IO-wait share of all processors, 0 to 1.
	IOWaitRatio *float64 `json:"io_wait_ratio,omitempty" ch:"io_wait_ratio"`

	// Share of time in which at least one task waited for a CPU (PSI), 0 to 1.
	CPUPressureRatio *float64 `json:"cpu_pressure_ratio,omitempty" ch:"cpu_pressure_ratio"`
	// Share of time in which at least one task waited for IO (PSI), 0 to 1.
	IOPressureRatio *float64 `json:"io_pressure_ratio,omitempty" ch:"io_pressure_ratio"`
	// Share of time in which at least one task waited for memory (PSI), 0 to 1.
	MemoryPressureRatio *float64 `json:"memory_pressure_ratio,omitempty" ch:"memory_pressure_ratio"`

	// Load average over one minute.
	LoadAverage *float64 `json:"load_average,omitempty" ch:"load_average"`
	// Total memory.
	MemoryTotalBytes *float64 `json:"memory_total_bytes,omitempty" ch:"memory_total_bytes"`
	// Memory available for new processes without swapping.
	MemoryAvailableBytes *float64 `json:"memory_available_bytes,omitempty" ch:"memory_available_bytes"`

	// Read rate of all disks.
	DiskReadBytesPerSecond *float64 `json:"disk_read_bytes_per_second,omitempty" ch:"disk_read_bytes_per_second"`
	// Write rate of all disks.
	DiskWrittenBytesPerSecond *float64 `json:"disk_written_bytes_per_second,omitempty" ch:"disk_written_bytes_per_second"`
	// Busy share of the busiest disk, 0 to 1.
	DiskBusyRatio *float64 `json:"disk_busy_ratio,omitempty" ch:"disk_busy_ratio"`

	// Receive rate of all interfaces except loopback.
	NetworkReceivedBytesPerSecond *float64 `json:"network_received_bytes_per_second,omitempty" ch:"network_received_bytes_per_second"`
	// Transmit rate of all interfaces except loopback.
	NetworkTransmittedBytesPerSecond *float64 `json:"network_transmitted_bytes_per_second,omitempty" ch:"network_transmitted_bytes_per_second"`

	// Model of the processors as the system reports it.
	CPUModel string `json:"cpu_model,omitempty" ch:"cpu_model"`
	// Highest measured speed of one processor since the collector's start, by the collector's own
	// benchmark.
	SpeedOperationsPerSecond *float64 `json:"speed_operations_per_second,omitempty" ch:"speed_operations_per_second"`

	// Share of time in which all tasks with work waited for IO (PSI), 0 to 1.
	IOFullPressureRatio *float64 `json:"io_full_pressure_ratio,omitempty" ch:"io_full_pressure_ratio"`
	// Share of time in which all tasks with work waited for memory (PSI), 0 to 1. The kernel has no
	// such figure for the CPUs of a node.
	MemoryFullPressureRatio *float64 `json:"memory_full_pressure_ratio,omitempty" ch:"memory_full_pressure_ratio"`
}

// Hardware returns the hardware of the node.
func (s *Sample) Hardware() Hardware {
	h := Hardware{Cores: s.Cores, CPUModel: s.CPUModel}
	if s.SpeedOperationsPerSecond != nil {
		h.Speed = *s.SpeedOperationsPerSecond
	}
	return h
}

// SampleID returns the identity of a sample.
func SampleID(node, boot string, number uint64) string {
	return fmt.Sprintf("%s/%s/%d", node, boot, number)
}

// Subject implements Event.
func (s *Sample) Subject() string { return NodeSubject(s.Node, EventSample) }

// Validate implements Event.
func (s *Sample) Validate() error {
	if s.IntervalSeconds == 0 {
		return Invalid("interval_seconds", "missing or 0; want a time above 0")
	}
	speed := s.Hardware().Speed
	if s.SpeedOperationsPerSecond != nil && speed == 0 {
		return Invalid("speed_operations_per_second", "is not above 0")
	}
	return cmp.Or(
		s.Stamp.validate(),
		validateToken("node", s.Node),
		validateRange("cores", s.Cores, 1, MaxCPUs),
		validateRange("interval_seconds", s.IntervalSeconds, 0, day.Seconds()),
		validateRange("speed_operations_per_second", speed, 0, maxSpeed),
		validateText("cpu_model", s.CPUModel),
		validateRatios([]ratioField{
			{"cpu_ratio", s.CPURatio},
			{"io_wait_ratio", s.IOWaitRatio},
			{"cpu_pressure_ratio", s.CPUPressureRatio},
			{"io_pressure_ratio", s.IOPressureRatio},
			{"memory_pressure_ratio", s.MemoryPressureRatio},
			{"disk_busy_ratio", s.DiskBusyRatio},
			{"io_full_pressure_ratio", s.IOFullPressureRatio},
			{"memory_full_pressure_ratio", s.MemoryFullPressureRatio},
		}...),
	)
}

// Fleet maps node names to the known hardware. It is built by applying samples and job events in
// order. A known property stays until an incompatible report replaces the hardware of the node.
// Disturbances only lower a measured speed. Therefore, for a node with unchanged cores and CPU
// model, a speed replaces the known one only if it is faster by about a tenth.
type Fleet map[string]Hardware

// Sample adds the hardware of a node's sample and returns the known hardware of the node.
func (f Fleet) Sample(s *Sample) Hardware { return f.merge(s.Node, s.Hardware()) }

// merge adds the reported hardware of a node and returns the known hardware.
func (f Fleet) merge(node string, reported Hardware) Hardware {
	if known := f[node]; known.compatible(reported) {
		if faster(reported.Speed, known.Speed) {
			known.Speed = reported.Speed
		}
		reported = known.or(reported)
	}
	f[node] = reported
	return reported
}

// See adds the hardware that an event of a job reports for its nodes, in their order, and returns
// the known hardware of the nodes. minCores is the number of processors of the smallest node, 0 if
// unknown; most events report nothing else.
func (f Fleet) See(nodes []string, reported []Hardware, minCores uint32) []Hardware {
	all := make([]Hardware, len(nodes))
	for i, name := range nodes {
		var h Hardware
		if i < len(reported) {
			h = reported[i]
		}
		if h.Cores == 0 && len(nodes) == 1 {
			h.Cores = minCores
		}
		all[i] = f.merge(name, h)
		all[i].Cores = cmp.Or(all[i].Cores, minCores)
	}
	return all
}

// Of returns the known hardware of nodes, in their order.
func (f Fleet) Of(nodes []string) []Hardware {
	all := make([]Hardware, len(nodes))
	for i, name := range nodes {
		all[i] = f[name]
	}
	return all
}

// Complete returns h, the hardware of a node as it was known after an earlier event, with unknown
// properties taken from f. It returns h unchanged if the node was a different machine.
func (f Fleet) Complete(node string, h Hardware) Hardware {
	if known := f[node]; known.compatible(h) {
		return known.or(h)
	}
	return h
}
