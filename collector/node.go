package collector

import (
	"regexp"
	"runtime"
	"strconv"
	"time"

	"courier/schemas"

	dto "github.com/prometheus/client_model/go"
)

// Collectors of node_exporter that a sample is made of, and those that an
// Observer needs.
var (
	sampleCollectors   = []string{"cpu", "loadavg", "pressure", "meminfo", "diskstats", "netdev"}
	observerCollectors = []string{"cpu", "loadavg"}
)

// reading is what a node's counters say at one instant. Counters are totals
// since boot; two readings make a sample.
type reading struct {
	at       time.Time // carries the monotonic clock
	cpus     map[string]cpuSeconds
	disks    map[string]diskTotals
	networks map[string]networkTotals
	pressure map[string]stall // by resource

	loadAverage     *float64 // over one minute
	memoryTotal     *float64 // bytes
	memoryAvailable *float64 // bytes
}

// cpuSeconds is the time of one logical processor since boot. Time stolen by a
// hypervisor is busy: work was there and could not run.
type cpuSeconds struct{ busy, ioWait, idle float64 }

// diskTotals is what one disk did since boot.
type diskTotals struct{ readBytes, writtenBytes, busySeconds float64 }

// networkTotals is what one interface carried since boot, in bytes.
type networkTotals struct{ received, transmitted float64 }

func newReading(at time.Time) reading {
	return reading{at: at, cpus: map[string]cpuSeconds{}, disks: map[string]diskTotals{}, networks: map[string]networkTotals{}, pressure: map[string]stall{}}
}

// labels returns the value of a label of a metric; "" if it has none of that name.
type labels func(name string) string

// takers are the metrics of node_exporter that a sample is made of, by name, and
// what a reading takes of them.
var takers = map[string]func(r *reading, l labels, value float64){
	"node_cpu_seconds_total": func(r *reading, l labels, v float64) { r.addCPU(l("cpu"), l("mode"), v) },
	"node_load1":             func(r *reading, _ labels, v float64) { r.loadAverage = &v },

	"node_memory_MemTotal_bytes":     func(r *reading, _ labels, v float64) { r.memoryTotal = &v },
	"node_memory_MemAvailable_bytes": func(r *reading, _ labels, v float64) { r.memoryAvailable = &v },

	"node_disk_read_bytes_total":      disk(func(d *diskTotals, v float64) { d.readBytes = v }),
	"node_disk_written_bytes_total":   disk(func(d *diskTotals, v float64) { d.writtenBytes = v }),
	"node_disk_io_time_seconds_total": disk(func(d *diskTotals, v float64) { d.busySeconds = v }),

	"node_network_receive_bytes_total":  network(func(n *networkTotals, v float64) { n.received = v }),
	"node_network_transmit_bytes_total": network(func(n *networkTotals, v float64) { n.transmitted = v }),

	"node_pressure_cpu_waiting_seconds_total":    pressure("cpu", func(s *stall, v float64) { s.some = &v }),
	"node_pressure_io_waiting_seconds_total":     pressure("io", func(s *stall, v float64) { s.some = &v }),
	"node_pressure_io_stalled_seconds_total":     pressure("io", func(s *stall, v float64) { s.full = &v }),
	"node_pressure_memory_waiting_seconds_total": pressure("memory", func(s *stall, v float64) { s.some = &v }),
	"node_pressure_memory_stalled_seconds_total": pressure("memory", func(s *stall, v float64) { s.full = &v }),
}

// mostCounted is beyond every counter of a kernel, which has 64 bits.
const mostCounted = 1e20

// add takes one metric of node_exporter. Metrics that no sample needs are
// ignored, as is what is no count.
func (r *reading) add(name string, l labels, value float64) {
	if take, wanted := takers[name]; wanted && value >= 0 && value <= mostCounted {
		take(r, l, value)
	}
}

// addMetric takes one metric as Prometheus holds it.
func (r *reading) addMetric(name string, m *dto.Metric) {
	value := m.GetCounter().GetValue()
	if m.GetGauge() != nil {
		value = m.GetGauge().GetValue()
	}
	if m.GetUntyped() != nil {
		value = m.GetUntyped().GetValue()
	}
	r.add(name, func(key string) string {
		for _, l := range m.GetLabel() {
			if l.GetName() == key {
				return l.GetValue()
			}
		}
		return ""
	}, value)
}

// addFamily takes the metrics of one name.
func (r *reading) addFamily(f *dto.MetricFamily) {
	if _, wanted := takers[f.GetName()]; !wanted {
		return
	}
	for _, m := range f.GetMetric() {
		r.addMetric(f.GetName(), m)
	}
}

func (r *reading) addCPU(cpu, mode string, seconds float64) {
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

// wholeDisk matches disks, not their partitions and not what is stacked on them
// (device mapper, software RAID, loops): their bytes would count twice.
var wholeDisk = regexp.MustCompile(`^([hsv]d[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+|dasd[a-z]+|pmem\d+|[nr]bd\d+)$`)

func disk(set func(*diskTotals, float64)) func(*reading, labels, float64) {
	return func(r *reading, l labels, value float64) {
		device := l("device")
		d, known := r.disks[device]
		if !known && !wholeDisk.MatchString(device) {
			return
		}
		set(&d, value)
		r.disks[device] = d
	}
}

// virtualInterface matches loopback and what carries its bytes over another
// interface: bridges, container pairs, tunnels, bonds, VLANs.
var virtualInterface = regexp.MustCompile(`^(lo|veth.*|docker.*|br\d+|br-.*|virbr.*|vnet.*|cni.*|cali.*|cilium.*|lxc.*|flannel.*|vxlan.*|geneve.*|dummy.*|ifb.*|tun.*|tap.*|wg.*|bond.*|team.*|kube-.*|nodelocaldns|ovs-.*|sit\d+|gre.*|ip6.*|ip_vti.*|erspan.*|.*\..*)$`)

func network(set func(*networkTotals, float64)) func(*reading, labels, float64) {
	return func(r *reading, l labels, value float64) {
		device := l("device")
		n, known := r.networks[device]
		if !known && virtualInterface.MatchString(device) {
			return
		}
		set(&n, value)
		r.networks[device] = n
	}
}

// pressure takes pressure stall information. Of a CPU a node has no "full": the
// kernel writes 0 there, which measures nothing.
func pressure(resource string, set func(*stall, float64)) func(*reading, labels, float64) {
	return func(r *reading, _ labels, value float64) {
		s := r.pressure[resource]
		set(&s, value)
		r.pressure[resource] = s
	}
}

// cores returns the logical processors of the node.
func (r *reading) cores() uint32 {
	if n := len(r.cpus); n > 0 {
		return uint32(n)
	}
	return uint32(runtime.NumCPU())
}

// sampleBetween turns two consecutive readings into the measured part of a
// sample: means over the time between them. A counter that went back (a device
// was replaced, a kernel resumed) makes its figure absent, as does a reading
// without it. ok is false if no time passed.
func sampleBetween(before, after reading) (s schemas.Sample, ok bool) {
	interval := after.at.Sub(before.at).Seconds()
	if interval <= 0 {
		return s, false
	}
	s = schemas.Sample{
		IntervalSeconds: *figure(interval), Cores: after.cores(),
		LoadAverage: after.loadAverage, MemoryTotalBytes: after.memoryTotal, MemoryAvailableBytes: after.memoryAvailable,
		DiskReadBytesPerSecond:           sumBetween(before.disks, after.disks, interval, func(d diskTotals) float64 { return d.readBytes }),
		DiskWrittenBytesPerSecond:        sumBetween(before.disks, after.disks, interval, func(d diskTotals) float64 { return d.writtenBytes }),
		NetworkReceivedBytesPerSecond:    sumBetween(before.networks, after.networks, interval, func(n networkTotals) float64 { return n.received }),
		NetworkTransmittedBytesPerSecond: sumBetween(before.networks, after.networks, interval, func(n networkTotals) float64 { return n.transmitted }),
		DiskBusyRatio:                    busiestBetween(before.disks, after.disks, interval),
	}
	s.CPURatio, s.IOWaitRatio = cpuBetween(before, after)
	s.CPUPressureRatio, _ = pressureBetween(before.pressure["cpu"], after.pressure["cpu"], interval)
	s.IOPressureRatio, s.IOFullPressureRatio = pressureBetween(before.pressure["io"], after.pressure["io"], interval)
	s.MemoryPressureRatio, s.MemoryFullPressureRatio = pressureBetween(before.pressure["memory"], after.pressure["memory"], interval)
	return s, true
}

// cpuBetween returns the busy and the IO-wait share of all processors that are
// in both readings.
func cpuBetween(before, after reading) (busy, ioWait *float64) {
	var sum cpuSeconds
	for cpu, a := range after.cpus {
		b, known := before.cpus[cpu]
		if !known {
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
	return share(sum.busy / total), share(sum.ioWait / total)
}

// sumBetween returns the rate of a counter over all devices that are in both
// readings, in units per second.
func sumBetween[T any](before, after map[string]T, interval float64, counter func(T) float64) *float64 {
	sum, found := 0.0, false
	for device, a := range after {
		b, known := before[device]
		if !known {
			continue
		}
		d := counter(a) - counter(b)
		if d < 0 {
			return nil
		}
		sum, found = sum+d, true
	}
	if !found {
		return nil
	}
	return figure(sum / interval)
}

// busiestBetween returns the busy share of the busiest disk.
func busiestBetween(before, after map[string]diskTotals, interval float64) *float64 {
	var most *float64
	for device, a := range after {
		b, known := before[device]
		if !known {
			continue
		}
		d := a.busySeconds - b.busySeconds
		if d < 0 {
			return nil
		}
		if most == nil || d/interval > *most {
			most = share(d / interval)
		}
	}
	return most
}

// share returns a ratio that clocks of different grain may push a little over 1.
func share(ratio float64) *float64 { return figure(min(ratio, 1)) }

// figure returns a number with six digits: more than counters of hundredths of a second
// can tell, and a sixth of a sample less to send, to read and to keep than with all of a
// float's.
func figure(v float64) *float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // what was written can be read
	return &v
}
