package collector

import (
	"regexp"
	"runtime"
	"strconv"
	"time"

	"courier/schemas"

	dto "github.com/prometheus/client_model/go"
)

// Collectors of node_exporter for samples and for an Observer.
var (
	sampleCollectors   = []string{"cpu", "loadavg", "pressure", "meminfo", "diskstats", "netdev"}
	observerCollectors = []string{"cpu", "loadavg"}
)

// nodeReading is the content of a node's counters at one instant. Counters are totals since the
// boot; two readings make a sample.
type nodeReading struct {
	at       time.Time // has the monotonic clock
	cpus     map[string]cpuSeconds
	disks    map[string]diskTotals
	networks map[string]networkTotals
	pressure map[string]pressureTotals // by resource

	loadAverage     *float64 // over one minute
	memoryTotal     *float64 // bytes
	memoryAvailable *float64 // bytes
}

// cpuSeconds is the time of one logical processor since the boot. Time that a hypervisor steals
// counts as busy, because there was work that could not run.
type cpuSeconds struct{ busy, ioWait, idle float64 }

// diskTotals are the totals of one disk since the boot.
type diskTotals struct{ readBytes, writtenBytes, busySeconds float64 }

// networkTotals are the totals of one network interface since the boot, in bytes.
type networkTotals struct{ received, transmitted float64 }

// pressureTotals is how long tasks have waited for a resource since the boot, in seconds: at least
// one task (some), and all tasks that were not idle (full), as in the kernel's pressure stall
// information. An unknown figure is nil.
type pressureTotals struct{ some, full *float64 }

func newReading(at time.Time) nodeReading {
	return nodeReading{
		at:       at,
		cpus:     map[string]cpuSeconds{},
		disks:    map[string]diskTotals{},
		networks: map[string]networkTotals{},
		pressure: map[string]pressureTotals{},
	}
}

// labelFunc returns the value of a label of a metric, or an empty string if the label is missing.
type labelFunc func(name string) string

type metricSetter func(r *nodeReading, label labelFunc, value float64)

// setters are the setters of the node_exporter metrics that a sample needs, by name.
var setters = map[string]metricSetter{
	"node_cpu_seconds_total": func(r *nodeReading, label labelFunc, v float64) {
		r.addCPU(label("cpu"), label("mode"), v)
	},
	"node_load1": func(r *nodeReading, _ labelFunc, v float64) {
		r.loadAverage = &v
	},

	"node_memory_MemTotal_bytes": func(r *nodeReading, _ labelFunc, v float64) {
		r.memoryTotal = &v
	},
	"node_memory_MemAvailable_bytes": func(r *nodeReading, _ labelFunc, v float64) {
		r.memoryAvailable = &v
	},

	"node_disk_read_bytes_total": diskSetter(func(d *diskTotals, v float64) {
		d.readBytes = v
	}),
	"node_disk_written_bytes_total": diskSetter(func(d *diskTotals, v float64) {
		d.writtenBytes = v
	}),
	"node_disk_io_time_seconds_total": diskSetter(func(d *diskTotals, v float64) {
		d.busySeconds = v
	}),

	"node_network_receive_bytes_total": networkSetter(func(n *networkTotals, v float64) {
		n.received = v
	}),
	"node_network_transmit_bytes_total": networkSetter(func(n *networkTotals, v float64) {
		n.transmitted = v
	}),

	"node_pressure_cpu_waiting_seconds_total":    pressureSetter("cpu", setSome),
	"node_pressure_io_waiting_seconds_total":     pressureSetter("io", setSome),
	"node_pressure_io_stalled_seconds_total":     pressureSetter("io", setFull),
	"node_pressure_memory_waiting_seconds_total": pressureSetter("memory", setSome),
	"node_pressure_memory_stalled_seconds_total": pressureSetter("memory", setFull),
}

// maxCount is above every counter of the kernel, which has 64 bits.
const maxCount = 1e20

// add takes one metric of node_exporter. It ignores metrics that no sample needs, and invalid
// values.
func (r *nodeReading) add(name string, label labelFunc, value float64) {
	if set, isNeeded := setters[name]; isNeeded && value >= 0 && value <= maxCount {
		set(r, label, value)
	}
}

// addMetric takes one metric of a family.
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

func (r *nodeReading) addFamily(f *dto.MetricFamily) {
	if _, isNeeded := setters[f.GetName()]; !isNeeded {
		return
	}
	for _, m := range f.GetMetric() {
		r.addMetric(f.GetName(), m)
	}
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

func diskSetter(set func(*diskTotals, float64)) metricSetter {
	return func(r *nodeReading, label labelFunc, value float64) {
		device := label("device")
		d, isKnown := r.disks[device]
		if !isKnown && !wholeDisk.MatchString(device) {
			return
		}
		set(&d, value)
		r.disks[device] = d
	}
}

// virtualInterface matches the loopback interface, and interfaces whose bytes another interface
// also carries: bridges, container pairs, tunnels, bonds and VLANs.
var virtualInterface = regexp.MustCompile(
	`^(lo|veth.*|docker.*|br\d+|br-.*|virbr.*|vnet.*|cni.*|cali.*|cilium.*|lxc.*|flannel.*|` +
		`vxlan.*|geneve.*|dummy.*|ifb.*|tun.*|tap.*|wg.*|bond.*|team.*|kube-.*|nodelocaldns|` +
		`ovs-.*|sit\d+|gre.*|ip6.*|ip_vti.*|erspan.*|.*\..*)$`)

func networkSetter(set func(*networkTotals, float64)) metricSetter {
	return func(r *nodeReading, label labelFunc, value float64) {
		device := label("device")
		n, isKnown := r.networks[device]
		if !isKnown && virtualInterface.MatchString(device) {
			return
		}
		set(&n, value)
		r.networks[device] = n
	}
}

// pressureSetter returns the setter of a pressure metric. There is none for the full CPU pressure
// of a node, because the kernel always reports it as 0.
func pressureSetter(resource string, set func(*pressureTotals, float64)) metricSetter {
	return func(r *nodeReading, _ labelFunc, value float64) {
		p := r.pressure[resource]
		set(&p, value)
		r.pressure[resource] = p
	}
}

func setSome(p *pressureTotals, v float64) { p.some = &v }

func setFull(p *pressureTotals, v float64) { p.full = &v }

// cores returns the number of logical processors of the node.
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
	s = schemas.Sample{
		IntervalSeconds:      *sixDigits(interval),
		Cores:                after.cores(),
		LoadAverage:          after.loadAverage,
		MemoryTotalBytes:     after.memoryTotal,
		MemoryAvailableBytes: after.memoryAvailable,
		DiskBusyRatio:        busiestBetween(before.disks, after.disks, interval),
	}
	s.CPURatio, s.IOWaitRatio = cpuBetween(before, after)

	disk := func(total func(diskTotals) float64) *float64 {
		return rateBetween(before.disks, after.disks, interval, total)
	}
	s.DiskReadBytesPerSecond = disk(func(d diskTotals) float64 { return d.readBytes })
	s.DiskWrittenBytesPerSecond = disk(func(d diskTotals) float64 { return d.writtenBytes })

	network := func(total func(networkTotals) float64) *float64 {
		return rateBetween(before.networks, after.networks, interval, total)
	}
	s.NetworkReceivedBytesPerSecond = network(func(n networkTotals) float64 { return n.received })
	s.NetworkTransmittedBytesPerSecond = network(func(n networkTotals) float64 {
		return n.transmitted
	})

	pressure := func(resource string) (some, full *float64) {
		b, a := before.pressure[resource], after.pressure[resource]
		return pressureRatio(b.some, a.some, interval), pressureRatio(b.full, a.full, interval)
	}
	s.CPUPressureRatio, _ = pressure("cpu")
	s.IOPressureRatio, s.IOFullPressureRatio = pressure("io")
	s.MemoryPressureRatio, s.MemoryFullPressureRatio = pressure("memory")
	return s, true
}

// cpuBetween returns the busy and the I/O-wait share of all processors that are in both readings.
func cpuBetween(before, after nodeReading) (busy, ioWait *float64) {
	var sum cpuSeconds
	for cpu, a := range after.cpus {
		b, isKnown := before.cpus[cpu]
		if !isKnown {
			continue
		}
		if a.busy < b.busy || a.ioWait < b.ioWait || a.idle < b.idle {
			return nil, nil
		}
		sum.busy += a.busy - b.busy
		sum.ioWait += a.ioWait - b.ioWait
		sum.idle += a.idle - b.idle
	}
	total := sum.busy + sum.ioWait + sum.idle
	if total <= 0 {
		return nil, nil
	}
	return ratioOf(sum.busy / total), ratioOf(sum.ioWait / total)
}

// rateBetween returns the rate of a counter over all devices that are in both readings, in units
// per second.
func rateBetween[T any](before, after map[string]T, interval float64, counter func(T) float64) *float64 {
	sum, found := 0.0, false
	for device, a := range after {
		b, isKnown := before[device]
		if !isKnown {
			continue
		}
		increase := counter(a) - counter(b)
		if increase < 0 {
			return nil
		}
		sum, found = sum+increase, true
	}
	if !found {
		return nil
	}
	return sixDigits(sum / interval)
}

// busiestBetween returns the busy share of the busiest disk.
func busiestBetween(before, after map[string]diskTotals, interval float64) *float64 {
	var busiest *float64
	for device, a := range after {
		b, isKnown := before[device]
		if !isKnown {
			continue
		}
		busy := a.busySeconds - b.busySeconds
		if busy < 0 {
			return nil
		}
		if busiest == nil || busy/interval > *busiest {
			busiest = ratioOf(busy / interval)
		}
	}
	return busiest
}

// pressureRatio returns the share of an interval in which tasks waited for a resource.
func pressureRatio(before, after *float64, interval float64) *float64 {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	return ratioOf((*after - *before) / interval)
}

// ratioOf returns a ratio. Clocks of different resolution can put it slightly above 1, which is
// corrected.
func ratioOf(ratio float64) *float64 { return sixDigits(min(ratio, 1)) }

// sixDigits rounds a number to six significant digits. The counters have hundredths of a second,
// and with fewer digits a sample is a sixth smaller.
func sixDigits(v float64) *float64 {
	text := strconv.FormatFloat(v, 'g', 6, 64)
	v, _ = strconv.ParseFloat(text, 64) // FormatFloat writes a valid number
	return &v
}
