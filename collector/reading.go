package collector

import (
	"math"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"courier/schemas"

	dto "github.com/prometheus/client_model/go"
)

// sampleCollectors are the collectors of node_exporter that a sample needs.
var sampleCollectors = []string{"cpu", "loadavg", "pressure", "meminfo", "diskstats", "netdev"}

// nodeReading is the content of a node's counters at one instant. Counters are totals since the
// boot; two readings make a sample.
type nodeReading struct {
	at     time.Time // has the monotonic clock
	cpus   map[string]cpuSeconds
	totals map[string]map[string]float64 // other metrics, by device; "" if the metric has none
}

// cpuSeconds is the time of one logical processor since the boot. Time that a hypervisor steals
// counts as busy, because there was work that could not run.
type cpuSeconds struct{ busy, ioWait, idle float64 }

func newReading(at time.Time) nodeReading {
	return nodeReading{at: at, cpus: map[string]cpuSeconds{}, totals: map[string]map[string]float64{}}
}

// labelFunc returns the value of a label of a metric, or an empty string if the label is missing.
type labelFunc func(name string) string

// The metrics of node_exporter that a sample needs. Pressure is the time for which at least one task has
// waited for a resource (waiting), or all tasks that were not idle (stalled), as in the kernel's
// pressure stall information. The kernel always reports the stalled time of processors as 0.
const (
	cpuMetric             = "node_cpu_seconds_total"
	loadMetric            = "node_load1"
	memoryTotalMetric     = "node_memory_MemTotal_bytes"
	memoryAvailableMetric = "node_memory_MemAvailable_bytes"

	diskReadMetric    = "node_disk_read_bytes_total"
	diskWrittenMetric = "node_disk_written_bytes_total"
	diskBusyMetric    = "node_disk_io_time_seconds_total"
	receivedMetric    = "node_network_receive_bytes_total"
	transmittedMetric = "node_network_transmit_bytes_total"

	cpuWaitingMetric    = "node_pressure_cpu_waiting_seconds_total"
	ioWaitingMetric     = "node_pressure_io_waiting_seconds_total"
	ioStalledMetric     = "node_pressure_io_stalled_seconds_total"
	memoryWaitingMetric = "node_pressure_memory_waiting_seconds_total"
	memoryStalledMetric = "node_pressure_memory_stalled_seconds_total"
)

// counts reports, by metric, whether the figure of a device counts. The device of a metric without one
// is "".
var counts = map[string]func(device string) bool{
	cpuMetric:             hasNoDevice,
	loadMetric:            hasNoDevice,
	memoryTotalMetric:     hasNoDevice,
	memoryAvailableMetric: hasNoDevice,
	diskReadMetric:        wholeDisk.MatchString,
	diskWrittenMetric:     wholeDisk.MatchString,
	diskBusyMetric:        wholeDisk.MatchString,
	receivedMetric:        isRealInterface,
	transmittedMetric:     isRealInterface,
	cpuWaitingMetric:      hasNoDevice,
	ioWaitingMetric:       hasNoDevice,
	ioStalledMetric:       hasNoDevice,
	memoryWaitingMetric:   hasNoDevice,
	memoryStalledMetric:   hasNoDevice,
}

func hasNoDevice(device string) bool { return device == "" }

func isRealInterface(device string) bool { return !virtualInterface.MatchString(device) }

// maxCount is above every counter of the kernel, which has 64 bits.
const maxCount = 1e20

// add takes a metric of node_exporter. It ignores invalid values, and what no sample needs.
func (r *nodeReading) add(name string, label labelFunc, value float64) {
	device := label("device")
	isCounted, isNeeded := counts[name]
	if !isNeeded || value < 0 || value > maxCount || math.IsNaN(value) || !isCounted(device) {
		return
	}
	if name == cpuMetric {
		r.addCPU(label("cpu"), label("mode"), value)
		return
	}
	devices := r.totals[name]
	if devices == nil {
		devices = map[string]float64{}
		r.totals[name] = devices
	}
	devices[device] = value
}

// value returns a metric that has no device, or nil if it is unknown.
func (r *nodeReading) value(metric string) *float64 {
	v, isKnown := r.totals[metric][""]
	if !isKnown {
		return nil
	}
	return &v
}

func (r *nodeReading) addMetric(name string, m *dto.Metric) {
	value := m.GetCounter().GetValue()
	if m.GetGauge() != nil {
		value = m.GetGauge().GetValue()
	}
	if m.GetUntyped() != nil {
		value = m.GetUntyped().GetValue()
	}
	label := func(key string) string {
		for _, l := range m.GetLabel() {
			if l.GetName() == key {
				return l.GetValue()
			}
		}
		return ""
	}
	r.add(name, label, value)
}

func (r *nodeReading) addCPU(cpu, mode string, seconds float64) {
	c := r.cpus[cpu]
	switch mode {
	case "idle":
		c.idle += seconds
	case "iowait":
		c.ioWait += seconds
	default:
		c.busy += seconds
	}
	r.cpus[cpu] = c
}

// wholeDisk matches the names of disks. It excludes partitions and stacked devices (device mapper,
// software RAID, loop devices), whose bytes would count twice.
var wholeDisk = regexp.MustCompile(
	`^([hsv]d[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+|dasd[a-z]+|pmem\d+|[nr]bd\d+)$`)

// virtualInterface matches the loopback interface, and interfaces whose bytes another interface
// also carries: bridges, container pairs, tunnels, bonds and VLANs.
var virtualInterface = regexp.MustCompile(
	`^(lo|veth.*|docker.*|br\d+|br-.*|virbr.*|vnet.*|cni.*|cali.*|cilium.*|lxc.*|flannel.*|` +
		`vxlan.*|geneve.*|dummy.*|ifb.*|tun.*|tap.*|wg.*|bond.*|team.*|kube-.*|nodelocaldns|` +
		`ovs-.*|sit\d+|gre.*|ip6.*|ip_vti.*|erspan.*|.*\..*)$`)

func (r *nodeReading) cores() uint32 {
	if n := len(r.cpus); n > 0 {
		return uint32(n)
	}
	return uint32(runtime.NumCPU())
}

// sampleBetween returns the measured part of a sample: means over the time between two readings. A
// figure is missing if it is missing in a reading or its counter decreased, for example because a
// device was replaced. ok is false if no time has passed.
func sampleBetween(before, after nodeReading) (s schemas.Sample, ok bool) {
	interval := after.at.Sub(before.at).Seconds()
	if interval <= 0 {
		return s, false
	}
	rate := func(metric string) *float64 {
		return rateBetween(before.totals[metric], after.totals[metric], interval, sum)
	}
	ratio := func(metric string) *float64 { // of the busiest device
		share := rateBetween(before.totals[metric], after.totals[metric], interval, math.Max)
		if share != nil {
			*share = min(*share, 1) // clocks of different resolution can put it slightly above
		}
		return share
	}
	s = schemas.Sample{
		IntervalSeconds: *sixDigits(interval),
		Cores:           after.cores(),
		LoadAverage:     after.value(loadMetric),

		MemoryTotalBytes:     after.value(memoryTotalMetric),
		MemoryAvailableBytes: after.value(memoryAvailableMetric),

		DiskReadBytesPerSecond:           rate(diskReadMetric),
		DiskWrittenBytesPerSecond:        rate(diskWrittenMetric),
		DiskBusyRatio:                    ratio(diskBusyMetric),
		NetworkReceivedBytesPerSecond:    rate(receivedMetric),
		NetworkTransmittedBytesPerSecond: rate(transmittedMetric),

		CPUPressureRatio:        ratio(cpuWaitingMetric),
		IOPressureRatio:         ratio(ioWaitingMetric),
		IOFullPressureRatio:     ratio(ioStalledMetric),
		MemoryPressureRatio:     ratio(memoryWaitingMetric),
		MemoryFullPressureRatio: ratio(memoryStalledMetric),
	}
	s.CPURatio, s.IOWaitRatio = cpuBetween(before, after)
	return s, true
}

// cpuBetween returns the busy and the I/O-wait share of all processors that are in both readings.
func cpuBetween(before, after nodeReading) (busy, ioWait *float64) {
	var all cpuSeconds
	for cpu, a := range after.cpus {
		b, isKnown := before.cpus[cpu]
		if !isKnown {
			continue
		}
		if a.busy < b.busy || a.ioWait < b.ioWait || a.idle < b.idle {
			return nil, nil
		}
		all.busy += a.busy - b.busy
		all.ioWait += a.ioWait - b.ioWait
		all.idle += a.idle - b.idle
	}
	total := all.busy + all.ioWait + all.idle
	if total <= 0 {
		return nil, nil
	}
	return sixDigits(all.busy / total), sixDigits(all.ioWait / total)
}

// rateBetween returns the rate of a counter, in units per second. It combines the increases of the devices
// that are in both readings.
func rateBetween(before, after map[string]float64, interval float64, combine func(a, b float64) float64) *float64 {
	increase, found := 0.0, false
	for device, a := range after {
		b, isKnown := before[device]
		if !isKnown {
			continue
		}
		if a < b {
			return nil
		}
		increase, found = combine(increase, a-b), true
	}
	if !found {
		return nil
	}
	return sixDigits(increase / interval)
}

func sum(a, b float64) float64 { return a + b }

// sixDigits rounds a number to six significant digits. The counters have hundredths of a second,
// and with fewer digits a sample is a sixth smaller.
func sixDigits(v float64) *float64 {
	text := strconv.FormatFloat(v, 'g', 6, 64)
	v, _ = strconv.ParseFloat(text, 64) // FormatFloat writes a valid number
	return &v
}
