package schemas

import "fmt"

// Sample is node.<node>.sample: one measurement of a node. Rates and ratios are
// means over the interval before At. What the system does not measure is absent.
type Sample struct {
	Stamp
	Node            string  `json:"node" ch:"node"`                         // its name
	BootID          string  `json:"boot_id" ch:"boot_id"`                   // tells two machines with one name apart
	Number          uint64  `json:"number" ch:"number"`                     // counts samples of this collector from 1
	IntervalSeconds float64 `json:"interval_seconds" ch:"interval_seconds"` // time that the means cover
	Cores           uint32  `json:"cores" ch:"cores"`                       // logical processors

	CPURatio    *float64 `json:"cpu_ratio,omitempty" ch:"cpu_ratio"`         // busy share of all processors, 0 to 1; IO-wait is not busy
	IOWaitRatio *float64 `json:"io_wait_ratio,omitempty" ch:"io_wait_ratio"` // IO-wait share, 0 to 1

	CPUPressureRatio    *float64 `json:"cpu_pressure_ratio,omitempty" ch:"cpu_pressure_ratio"`       // share of time in which some task waited for a CPU (PSI)
	IOPressureRatio     *float64 `json:"io_pressure_ratio,omitempty" ch:"io_pressure_ratio"`         // the same for IO
	MemoryPressureRatio *float64 `json:"memory_pressure_ratio,omitempty" ch:"memory_pressure_ratio"` // the same for memory

	LoadAverage          *float64 `json:"load_average,omitempty" ch:"load_average"`                     // over one minute
	MemoryTotalBytes     *float64 `json:"memory_total_bytes,omitempty" ch:"memory_total_bytes"`         //
	MemoryAvailableBytes *float64 `json:"memory_available_bytes,omitempty" ch:"memory_available_bytes"` // for new work, without swapping

	DiskReadBytesPerSecond    *float64 `json:"disk_read_bytes_per_second,omitempty" ch:"disk_read_bytes_per_second"`       // all disks
	DiskWrittenBytesPerSecond *float64 `json:"disk_written_bytes_per_second,omitempty" ch:"disk_written_bytes_per_second"` // all disks
	DiskBusyRatio             *float64 `json:"disk_busy_ratio,omitempty" ch:"disk_busy_ratio"`                             // of the busiest disk, 0 to 1

	NetworkReceivedBytesPerSecond    *float64 `json:"network_received_bytes_per_second,omitempty" ch:"network_received_bytes_per_second"`       // all interfaces but loopback
	NetworkTransmittedBytesPerSecond *float64 `json:"network_transmitted_bytes_per_second,omitempty" ch:"network_transmitted_bytes_per_second"` // all interfaces but loopback

	CPUModel                 string   `json:"cpu_model,omitempty" ch:"cpu_model"`                                     // of the processors, as the system names it
	SpeedOperationsPerSecond *float64 `json:"speed_operations_per_second,omitempty" ch:"speed_operations_per_second"` // of one processor, in the collector's own measure: the best so far

	IOFullPressureRatio     *float64 `json:"io_full_pressure_ratio,omitempty" ch:"io_full_pressure_ratio"`         // share of time in which all tasks that had work waited for IO (PSI), 0 to 1
	MemoryFullPressureRatio *float64 `json:"memory_full_pressure_ratio,omitempty" ch:"memory_full_pressure_ratio"` // the same for memory; of a CPU the kernel tells none for a node
}

// Hardware returns what the sample tells of the node as a machine.
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
	if err := s.Stamp.validate(); err != nil {
		return err
	}
	if err := validateToken("node", s.Node); err != nil {
		return err
	}
	if s.Cores < 1 || s.Cores > MaxCPUs {
		return Invalid("cores", "%d is not between 1 and %d", s.Cores, MaxCPUs)
	}
	if !(s.IntervalSeconds > 0 && s.IntervalSeconds <= 86_400) {
		return Invalid("interval_seconds", "%v is not above 0 and at most a day", s.IntervalSeconds)
	}
	for _, r := range []struct {
		field string
		value *float64
	}{{"cpu_ratio", s.CPURatio}, {"io_wait_ratio", s.IOWaitRatio}, {"cpu_pressure_ratio", s.CPUPressureRatio},
		{"io_pressure_ratio", s.IOPressureRatio}, {"memory_pressure_ratio", s.MemoryPressureRatio}, {"disk_busy_ratio", s.DiskBusyRatio},
		{"io_full_pressure_ratio", s.IOFullPressureRatio}, {"memory_full_pressure_ratio", s.MemoryFullPressureRatio}} {
		if err := validateRatio(r.field, r.value); err != nil {
			return err
		}
	}
	if err := validateText("cpu_model", s.CPUModel); err != nil {
		return err
	}
	if v := s.SpeedOperationsPerSecond; v != nil && !(*v > 0 && *v <= maxSpeed) {
		return Invalid("speed_operations_per_second", "%v is not above 0 and at most %g", *v, float64(maxSpeed))
	}
	return nil
}

// maxSpeed is beyond any processor, in operations per second.
const maxSpeed = 1e15
