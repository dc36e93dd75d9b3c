package usage

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Mounts of systems with v2, with v1 and v2, and of a container that sees the paths of its host.
const (
	mountsV2 = `24 30 0:22 / /proc rw,nosuid - proc proc rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	mountsHybrid = `25 17 0:20 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:8 - tmpfs tmpfs ro,mode=755
30 25 0:25 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:13 - cgroup cgroup rw,cpuacct,cpu
36 25 0:31 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:5 - cgroup2 cgroup rw
`
	mountsContainer = `612 611 0:28 /docker/8f1b /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
700 611 0:40 /a\040b /mnt/with\040blank rw - cgroup2 cgroup rw
`
)

func TestDirOf(t *testing.T) {
	for _, test := range []struct{ name, mounts, cgroup, want string }{
		{
			"v2", mountsV2, "0::/user.slice/user-1000.slice/session-2.scope\n",
			"/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope",
		},
		{"v1 and v2", mountsHybrid, "5:cpu,cpuacct:/a\n0::/b\n", "/sys/fs/cgroup/unified/b"},
		{"the root", mountsV2, "0::/\n", "/sys/fs/cgroup"},
		{"paths of the host", mountsContainer, "0::/docker/8f1b/job\n", "/sys/fs/cgroup/job"},
		{"a path with the same prefix", mountsContainer, "0::/docker/8f1b2\n", ""},
		{"escaped", mountsContainer, "0::/a b/c\n", "/mnt/with blank/c"},
		{"only v1", mountsV2, "5:cpu:/a\n", ""},
		{"removed", mountsV2, "0::/gone (deleted)\n", ""},
		{"outside", mountsV2, "0::/../../init.scope\n", ""},
		{"no v2 number", mountsV2, "7::/a\n", ""},
		{"garbage", "x - \n1 2 3 4 5 - cgroup2\n\xff", "::\n0:x\n\n:", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := dirOf(parseMembership(test.cgroup), parseCgroupMounts(test.mounts))
			if got != test.want {
				t.Errorf("directory = %q, want %q", got, test.want)
			}
		})
	}
}

// Files of kernel 6.1.
const (
	cpuStatV2 = "usage_usec 84215736\nuser_usec 71003325\nsystem_usec 13212411\n" +
		"nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
	memoryStatV2 = "anon 41943040\nfile 104857600\nkernel 1200128\nshmem 0\n" +
		"file_mapped 2097152\nfile_dirty 0\ninactive_anon 4096\nworkingset_refault_anon 0\n"
)

func TestCgroupFiles(t *testing.T) {
	for _, test := range []struct {
		name, text string
		keys       []string
		want       *float64
	}{
		{"cpu.stat", cpuStatV2, []string{"usage_usec"}, ptr(84215736.0)},
		{"memory.stat", memoryStatV2, []string{"anon", "file_mapped"}, ptr(44040192.0)},
		{"a missing key", memoryStatV2, []string{"anon", "rss"}, nil},
		{"garbage", "anon x\nanon\n\xff 1 2\n", []string{"anon"}, nil},
	} {
		if diff := cmp.Diff(test.want, sumOf(parseKeyed([]byte(test.text)), 1, test.keys...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if got := parsePIDs([]byte("12\n0\n\nx\n4194304")); !slices.Equal(got, []int{12, 0, 4194304}) {
		t.Errorf("parsePIDs() = %v, want 12, 0 and 4194304", got)
	}
}

func TestParsePressure(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       stallTime
	}{
		{
			"both",
			"some avg10=1.65 avg60=7.71 avg300=22.62 total=20559205553\n" +
				"full avg10=0.00 avg60=0.02 avg300=0.08 total=63302243\n",
			stallTime{ptr(20559.205553), ptr(63.302243)},
		},
		{
			"CPU pressure before kernel 5.13",
			"some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
			stallTime{some: ptr(5e-6)},
		},
		{"disabled", "", stallTime{}},
		{"garbage", "some total=x\nfull\nfull total=-1\n\xff total=1\n", stallTime{}},
	} {
		if diff := cmp.Diff(
			test.want, parsePressure([]byte(test.text)), cmp.AllowUnexported(stallTime{}),
		); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func FuzzCgroupFiles(f *testing.F) {
	for _, seed := range []string{
		mountsHybrid, mountsContainer, "5:cpu:/a\n0::/b\n", cpuStatV2, memoryStatV2,
		"some avg10=0.00 total=5\n", "12\n0\n",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, text, mountinfo string) {
		dir := dirOf(parseMembership(text), parseCgroupMounts(mountinfo))
		if strings.Contains(dir, "/../") && !strings.Contains(mountinfo, "..") {
			t.Errorf("directory %q", dir)
		}
		for key, value := range parseKeyed([]byte(text)) {
			if !(value >= 0) {
				t.Errorf("parseKeyed: value of %q = %v, want 0 or more", key, value)
			}
		}
		if s := parsePressure([]byte(text)); s.some != nil && !(*s.some >= 0) ||
			s.full != nil && !(*s.full >= 0) {
			t.Errorf("pressure = %+v, want no negative share", s)
		}
		parsePIDs([]byte(text)) // must not panic
	})
}
