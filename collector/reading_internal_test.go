package collector

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// readingOf returns a reading from lines of the form name{label="value"} number.
func readingOf(t *testing.T, at time.Time, text string) nodeReading {
	t.Helper()
	r := newReading(at)
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "{")
		labels, number, found := strings.Cut(rest, "} ")
		if !found {
			t.Fatalf("metric line %q has no labels", line)
		}
		label := func(key string) string {
			_, value, _ := strings.Cut(labels, key+`="`)
			value, _, _ = strings.Cut(value, `"`)
			return value
		}
		value, err := strconv.ParseFloat(number, 64)
		must(t, err)
		r.add(name, label, value)
	}
	return r
}

const before = `node_cpu_seconds_total{cpu="0",mode="user"} 100
node_cpu_seconds_total{cpu="0",mode="idle"} 1000
node_cpu_seconds_total{cpu="0",mode="iowait"} 10
node_cpu_seconds_total{cpu="1",mode="user"} 200
node_cpu_seconds_total{cpu="1",mode="idle"} 2000
node_cpu_seconds_total{cpu="1",mode="iowait"} 20
node_pressure_cpu_waiting_seconds_total{} 5
node_pressure_io_waiting_seconds_total{} 6
node_pressure_io_stalled_seconds_total{} 1
node_pressure_memory_waiting_seconds_total{} 7
node_disk_read_bytes_total{device="sda"} 1000
node_disk_written_bytes_total{device="sda"} 2000
node_disk_io_time_seconds_total{device="sda"} 3
node_disk_read_bytes_total{device="nvme0n1"} 50
node_disk_written_bytes_total{device="nvme0n1"} 60
node_disk_io_time_seconds_total{device="nvme0n1"} 4
node_network_receive_bytes_total{device="eth0"} 500
node_network_transmit_bytes_total{device="eth0"} 600
`

const after = `node_cpu_seconds_total{cpu="0",mode="user"} 101
node_cpu_seconds_total{cpu="0",mode="system"} 0.5
node_cpu_seconds_total{cpu="0",mode="steal"} 0.5
node_cpu_seconds_total{cpu="0",mode="idle"} 1000
node_cpu_seconds_total{cpu="0",mode="iowait"} 10
node_cpu_seconds_total{cpu="1",mode="user"} 200.5
node_cpu_seconds_total{cpu="1",mode="idle"} 2001
node_cpu_seconds_total{cpu="1",mode="iowait"} 20.5
node_load1{} 1.75
node_load5{} 9
node_memory_MemTotal_bytes{} 8e9
node_memory_MemAvailable_bytes{} 6e9
node_memory_MemFree_bytes{} 1e9
node_pressure_cpu_waiting_seconds_total{} 6
node_pressure_io_waiting_seconds_total{} 6
node_pressure_io_stalled_seconds_total{} 2
node_pressure_memory_waiting_seconds_total{} 9.5
node_disk_read_bytes_total{device="sda"} 1200
node_disk_written_bytes_total{device="sda"} 2000
node_disk_io_time_seconds_total{device="sda"} 3.2
node_disk_read_bytes_total{device="nvme0n1"} 150
node_disk_written_bytes_total{device="nvme0n1"} 100
node_disk_io_time_seconds_total{device="nvme0n1"} 5
node_disk_read_bytes_total{device="dm-0"} 1e12
node_disk_read_bytes_total{device="sda1"} 1e12
node_network_receive_bytes_total{device="eth0"} 900
node_network_transmit_bytes_total{device="eth0"} 602
node_network_receive_bytes_total{device="lo"} 1e12
node_network_receive_bytes_total{device="eth0.100"} 1e12
node_network_receive_bytes_total{device="wlan0"} 1e12
`

func TestSampleBetween(t *testing.T) {
	a, b := readingOf(t, noon, before), readingOf(t, noon.Add(2*time.Second), after)
	got, ok := sampleBetween(a, b)
	want := schemas.Sample{
		IntervalSeconds: 2, Cores: 2, CPURatio: ptr(2.5 / 4), IOWaitRatio: ptr(0.5 / 4),
		CPUPressureRatio: ptr(0.5), IOPressureRatio: ptr(0.0), MemoryPressureRatio: ptr(1.0),
		// 2.5 s of 2 s, by clocks of different resolution
		IOFullPressureRatio: ptr(0.5), // node_pressure_memory_stalled is missing
		LoadAverage:         ptr(1.75), MemoryTotalBytes: ptr(8e9), MemoryAvailableBytes: ptr(6e9),
		DiskReadBytesPerSecond: ptr(150.0), DiskWrittenBytesPerSecond: ptr(20.0), DiskBusyRatio: ptr(0.5),
		NetworkReceivedBytesPerSecond: ptr(200.0), NetworkTransmittedBytesPerSecond: ptr(1.0),
		// wlan0 is new
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("sampleBetween() = %v (-want +got):\n%s", ok, diff)
	}
}

func TestSampleBetween_OmitsUnknownFigures(t *testing.T) {
	const cpu, pressure = `node_cpu_seconds_total{cpu="0",mode="user"} `, `node_pressure_cpu_waiting_seconds_total{} `
	for _, test := range []struct {
		name, before, after, want string
	}{
		{"no metrics", "", "", ""},
		{"a decreasing CPU counter", cpu + "5", cpu + "4", ""},
		{"unchanged CPU counters", cpu + "5", cpu + "5", ""},
		{"another processor", cpu + "5", `node_cpu_seconds_total{cpu="1",mode="user"} 9`, ""},
		{"decreasing pressure", pressure + "5", pressure + "4", ""},
		{"new pressure", "", pressure + "4", ""},
		{"missing pressure", pressure + "4", "", ""},
		{
			"a replaced disk",
			`node_disk_read_bytes_total{device="sda"} 9
			node_disk_written_bytes_total{device="sda"} 1`,
			`node_disk_read_bytes_total{device="sda"} 1
			node_disk_written_bytes_total{device="sda"} 2`,
			"written",
		},
		{
			"a decreasing busy time",
			`node_disk_io_time_seconds_total{device="sda"} 9
			node_disk_io_time_seconds_total{device="sdb"} 9`,
			`node_disk_io_time_seconds_total{device="sda"} 1
			node_disk_io_time_seconds_total{device="sdb"} 10`,
			"",
		},
		{
			"a replaced interface",
			`node_network_receive_bytes_total{device="eth0"} 9
			node_network_transmit_bytes_total{device="eth0"} 9`,
			`node_network_receive_bytes_total{device="eth0"} 1
			node_network_transmit_bytes_total{device="eth0"} 10`,
			"transmitted",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, ok := sampleBetween(readingOf(t, noon, test.before), readingOf(t, noon.Add(time.Second), test.after))
			var got []string
			for _, f := range []struct {
				name  string
				value *float64
			}{
				{"cpu", s.CPURatio},
				{"iowait", s.IOWaitRatio},
				{"pressure", s.CPUPressureRatio},
				{"read", s.DiskReadBytesPerSecond},
				{"written", s.DiskWrittenBytesPerSecond},
				{"busy", s.DiskBusyRatio},
				{"received", s.NetworkReceivedBytesPerSecond},
				{"transmitted", s.NetworkTransmittedBytesPerSecond},
				{"load", s.LoadAverage},
			} {
				if f.value != nil {
					got = append(got, f.name)
				}
			}
			if text := strings.Join(got, " "); !ok || text != test.want {
				t.Errorf("known = %q, %v, want %q", text, ok, test.want)
			}
		})
	}
	if _, ok := sampleBetween(readingOf(t, noon, before), readingOf(t, noon, after)); ok {
		t.Error("sampleBetween() of one instant succeeded")
	}
}

func TestDevices(t *testing.T) {
	for device, want := range map[string]bool{
		"sda":       true,
		"sdaa":      true,
		"sda1":      false,
		"vda":       true,
		"xvda":      true,
		"nvme0n1":   true,
		"nvme0n1p2": false,
		"mmcblk0":   true,
		"mmcblk0p1": false,
		"dm-0":      false,
		"md127":     false,
		"loop3":     false,
		"zram0":     false,
		"nbd0":      true,
		"rbd0":      true,
		"dasda":     true,
		"sr0":       false,
	} {
		if got := wholeDisk.MatchString(device); got != want {
			t.Errorf("%s is a disk = %v, want %v", device, got, want)
		}
	}
	for device, want := range map[string]bool{
		"lo":        true,
		"eth0":      false,
		"enp3s0f1":  false,
		"wlan0":     false,
		"ib0":       false,
		"ens5":      false,
		"veth12ab":  true,
		"docker0":   true,
		"br-1234":   true,
		"br0":       true,
		"virbr0":    true,
		"cni0":      true,
		"flannel.1": true,
		"eth0.100":  true,
		"bond0":     true,
		"wg0":       true,
		"tun0":      true,
		"cali123":   true,
		"brcm0":     false,
	} {
		if got := virtualInterface.MatchString(device); got != want {
			t.Errorf("%s is virtual = %v, want %v", device, got, want)
		}
	}
}

func TestSixDigits(t *testing.T) {
	for _, test := range []struct{ v, want float64 }{
		{1.0 / 3, 0.333333},
		{50_331_648.14, 50_331_600},
		{2.000012345, 2.00001},
		{1.23456789e-7, 1.23457e-7},
		{0, 0},
		{1, 1},
		{0.25, 0.25},
	} {
		if got := *sixDigits(test.v); got != test.want {
			t.Errorf("sixDigits(%v) = %v, want %v", test.v, got, test.want)
		}
	}
}

func TestNodeReading_IgnoresInvalidValues(t *testing.T) {
	r := readingOf(t, noon, "node_load1{} NaN\nnode_memory_MemTotal_bytes{} +Inf\n"+
		"node_memory_MemAvailable_bytes{} -1\nnode_disk_read_bytes_total{device=\"sda\"} 1e300\n")
	if len(r.totals) > 0 {
		t.Errorf("reading = %v, want nothing", r.totals)
	}
}

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
