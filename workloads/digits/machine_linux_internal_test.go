//go:build linux

package digits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that is divided into small ones: each process of a training has a fraction of a CPU by
// cgroup, and a link of its own, in its own network namespace, to a switch in another one. All
// trainings share one disk. The kernel's own counters are the telemetry.

// Names on the machine, so that what an earlier run left behind can be removed.
const (
	machineName = "courier-digits" // of cgroups
	switchName  = "digits-switch"  // of a network namespace
	spacePrefix = "digits-"        // of the others
)

// Sizes. A period of the CPU limit is short against a step, and a burst of a link small against a
// gradient.
const (
	coreRatio     = 0.1 // of a CPU that a core of a shape has
	quotaPeriod   = 10 * time.Millisecond
	burstBytes    = 20_000
	queueBytes    = 8_000_000
	largestPacket = 16_000 // that the kernel hands to a link at once
)

// cgroupRoot has the hierarchies of cgroup v1, and the one of v2 that reports pressure.
const cgroupRoot = "/sys/fs/cgroup"

// pressureGroup is the cgroup v2 of all processes of the job, without controllers.
var pressureGroup = filepath.Join(cgroupRoot, "unified", machineName)

// diskGroup is the cgroup of all processes that share the slow disk.
var diskGroup = filepath.Join(cgroupRoot, "blkio", machineName)

// limitedMachine has a seat for each worker and server that a shape may have.
type limitedMachine struct {
	b       *testing.B
	seats   []*machineSeat
	device  string // major:minor of the disk
	running []*clusterProcess
}

// machineSeat is what limits one worker or server.
type machineSeat struct {
	name, address string
	cores         float64 // granted
}

// newLimitedMachine creates the limits, and removes them after the benchmark. It skips the benchmark
// where that is impossible.
func newLimitedMachine(b *testing.B, seats int) *limitedMachine {
	m := &limitedMachine{b: b}
	if os.Geteuid() != 0 {
		b.Skip("the limits of a machine need root")
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			b.Skip(err)
		}
	}
	for _, controller := range []string{"cpu", "cpuacct", "blkio", "unified"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, controller, "cgroup.procs")); err != nil {
			b.Skip("cgroup v1 with separate controllers, and v2 in unified, are needed: ", err)
		}
	}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "unified", "io.pressure")); err != nil {
		b.Skip("the kernel does not report pressure: ", err)
	}
	for i := range seats {
		m.seats = append(m.seats, &machineSeat{
			name: spacePrefix + strconv.Itoa(i), address: fmt.Sprintf("10.79.0.%d", i+1),
		})
	}
	m.device = deviceOf(b, b.TempDir())
	m.remove() // what an earlier run left behind
	b.Cleanup(m.remove)
	m.create()
	return m
}

// deviceOf returns the disk of a directory.
func deviceOf(b *testing.B, dir string) string {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
}

// create creates the cgroups, namespaces and links.
func (m *limitedMachine) create() {
	m.must(os.Mkdir(pressureGroup, 0o755))
	m.must(os.Mkdir(diskGroup, 0o755))
	m.ip("netns", "add", switchName)
	m.ip("-n", switchName, "link", "add", "bridge", "type", "bridge")
	m.ip("-n", switchName, "link", "set", "bridge", "up")
	for _, s := range m.seats {
		for _, dir := range s.groups() {
			m.must(os.Mkdir(dir, 0o755))
		}
		m.write(s.cpuFile("cpu.cfs_period_us"), strconv.FormatInt(quotaPeriod.Microseconds(), 10))
		m.ip("netns", "add", s.name)
		m.ip("-n", switchName, "link", "add", s.name, "type", "veth", "peer", "name", "eth0", "netns", s.name)
		packet := strconv.Itoa(largestPacket)
		m.ip("-n", switchName, "link", "set", s.name, "master", "bridge", "gso_max_size", packet, "up")
		m.ip("-n", s.name, "addr", "add", s.address+"/24", "dev", "eth0")
		m.ip("-n", s.name, "link", "set", "eth0", "gso_max_size", packet, "up")
	}
}

// remove ends all processes, and removes what create created.
func (m *limitedMachine) remove() {
	m.stop(slices.Clone(m.running)...)
	for _, s := range m.seats {
		_ = exec.Command("ip", "netns", "del", s.name).Run() // there may be none
	}
	_ = exec.Command("ip", "netns", "del", switchName).Run()
	dirs := []string{pressureGroup, diskGroup}
	for _, s := range m.seats {
		dirs = append(dirs, s.groups()...)
	}
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.b.Error(err)
		}
	}
}

func (s *machineSeat) groups() []string {
	name := machineName + "-" + s.name
	return []string{filepath.Join(cgroupRoot, "cpu", name), filepath.Join(cgroupRoot, "cpuacct", name)}
}

func (s *machineSeat) cpuFile(name string) string { return filepath.Join(s.groups()[0], name) }

// setQuota limits the CPU of a seat.
func (m *limitedMachine) setQuota(s *machineSeat, cores float64) {
	quota := cores * coreRatio * float64(quotaPeriod.Microseconds())
	m.write(s.cpuFile("cpu.cfs_quota_us"), strconv.Itoa(int(quota)))
}

// setLinks limits each direction of all links.
func (m *limitedMachine) setLinks(bytesPerSecond float64) {
	rate := strconv.Itoa(int(8*bytesPerSecond)) + "bit"
	for _, s := range m.seats {
		for _, end := range [][2]string{{s.name, "eth0"}, {switchName, s.name}} {
			m.run("tc", "-n", end[0], "qdisc", "replace", "dev", end[1], "root", "tbf", "rate", rate,
				"burst", strconv.Itoa(burstBytes), "limit", strconv.Itoa(queueBytes))
		}
	}
}

// setDisk limits the reads of all processes together.
func (m *limitedMachine) setDisk(bytesPerSecond float64) {
	m.write(filepath.Join(diskGroup, "blkio.throttle.read_bps_device"),
		m.device+" "+strconv.Itoa(int(bytesPerSecond)))
}

// seatCounters are counters of a process since its start.
type seatCounters struct {
	cpuSeconds float64 // of its cgroup
	linkBytes  float64 // sent and received
}

func (m *limitedMachine) counters(p *clusterProcess) seatCounters {
	c := seatCounters{cpuSeconds: m.number(filepath.Join(p.seat.groups()[1], "cpuacct.usage")) / 1e9}
	for line := range strings.Lines(m.read(fmt.Sprintf("/proc/%d/net/dev", p.cmd.Process.Pid))) {
		if name, rest, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "eth0" {
			fields := strings.Fields(rest)
			for _, i := range []int{0, 8} { // received, sent
				bytes, err := strconv.ParseFloat(fields[i], 64)
				m.must(err)
				c.linkBytes += bytes
			}
		}
	}
	return c
}

// stallSeconds are the seconds in which some process of the job was stalled.
func (m *limitedMachine) stallSeconds(resource string) float64 {
	text := m.read(filepath.Join(pressureGroup, resource+".pressure"))
	some, _, _ := strings.Cut(text, "\n")
	_, total, _ := strings.Cut(some, "total=")
	microseconds, err := strconv.ParseFloat(total, 64)
	m.must(err)
	return microseconds / 1e6
}

// ioWait returns the clock ticks that the CPUs of the node waited for a disk, and all ticks.
func (m *limitedMachine) ioWait() (waited, all float64) {
	first, _, _ := strings.Cut(m.read("/proc/stat"), "\n")
	for i, field := range strings.Fields(first)[1:9] { // guests are part of user
		ticks, err := strconv.ParseFloat(field, 64)
		m.must(err)
		all += ticks
		if i == 4 {
			waited = ticks
		}
	}
	return waited, all
}

func (m *limitedMachine) read(path string) string {
	text, err := os.ReadFile(path)
	m.must(err)
	return string(text)
}

func (m *limitedMachine) number(path string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(m.read(path)), 64)
	m.must(err)
	return v
}

func (m *limitedMachine) write(path, text string) {
	m.must(os.WriteFile(path, []byte(text), 0))
}

func (m *limitedMachine) ip(args ...string) { m.run("ip", args...) }

func (m *limitedMachine) run(program string, args ...string) {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		m.b.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

func (m *limitedMachine) must(err error) {
	if err != nil {
		m.b.Helper()
		m.b.Fatal(err)
	}
}
