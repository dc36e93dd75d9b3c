package engine

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the golden files")

func exampleSettings() settings {
	return settings{
		store: "/data/store", run: "/data/run", httpPort: 8123, tcpPort: 9000, nonce: "courier-abc",
		courierPassword: "one", readerPassword: "two", memoryBytes: 2_000_000_000,
	}
}

func TestConfiguration_MatchesTheGoldenFiles(t *testing.T) {
	// Passwords appear as hashes. Names are escaped as XML, and in the arguments as SQL.
	hostile := exampleSettings()
	hostile.store, hostile.run, hostile.nonce = `/a & b/<c>/it's/store`, `/a & b/<c>/it's\/run`, `"&<>`
	hostile.courierPassword, hostile.readerPassword = `<&>"'`, `]]>`
	for _, c := range []struct {
		name     string
		settings settings
	}{
		{"library", exampleSettings()},
		{"hostile", hostile},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := configXML(c.settings)
			must(t, err)
			users, err := usersXML(c.settings)
			must(t, err)
			checkGolden(t, c.name+".config.xml", string(config))
			checkGolden(t, c.name+".users.xml", string(users))
			checkGolden(t, c.name+".arguments", strings.Join(arguments(c.settings), "\n")+"\n")
		})
	}
}

// checkGolden compares got with a file of testdata, or updates the file.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestSetDefaults_RejectsInvalidOptions(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"no directory", Options{}, "data directory is not set"},
		{"control character", Options{DataDir: "/a\nb"}, "configuration file"},
		{"not UTF-8", Options{DataDir: "/a\xff"}, "configuration file"},
		{"port too large", Options{DataDir: "/d", HTTPPort: 65536}, "65536"},
		{"negative port", Options{DataDir: "/d", TCPPort: -1}, "-1"},
		{"one port for both", Options{DataDir: "/d", HTTPPort: 81, TCPPort: 81}, "both 81"},
		{"negative memory", Options{DataDir: "/d", MemoryBytes: -5}, "-5"},
	} {
		if err := setDefaults(&c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: setDefaults() = %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestSetDefaults_SetsDefaults(t *testing.T) {
	o := Options{DataDir: "relative"}
	must(t, setDefaults(&o))
	if !filepath.IsAbs(o.DataDir) || len(o.HostCommand) != 2 ||
		o.HostCommand[1] != "engine-host" {
		t.Errorf("setDefaults() = %+v, want an absolute directory and this program as host", o)
	}
	if memory := physicalMemory(); memory > 0 && o.MemoryBytes != max(memory/4, minMemoryBytes) {
		t.Errorf("memory = %d of %d bytes, want a quarter", o.MemoryBytes, memory)
	}
}

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
