package engine

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the golden files")

func exampleSettings() settings {
	return settings{
		Store: "/data/store", Run: "/data/run", HTTPPort: 8123, TCPPort: 9000, Nonce: "courier-abc",
		CourierPassword: "one", ReaderPassword: "two", MemoryBytes: 2_000_000_000,
	}
}

func TestConfiguration_MatchesTheGoldenFiles(t *testing.T) {
	// Passwords appear as hashes. Names are escaped as XML, and in the arguments as SQL.
	hostile := exampleSettings()
	hostile.Store, hostile.Run, hostile.Nonce = `/a & b/<c>/it's/store`, `/a & b/<c>/it's\/run`, `"&<>`
	hostile.CourierPassword, hostile.ReaderPassword = `<&>"'`, `]]>`
	for _, c := range []struct {
		name     string
		settings settings
	}{
		{"library", exampleSettings()},
		{"hostile", hostile},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := render(configTemplate, c.settings)
			must(t, err)
			users, err := render(usersTemplate, c.settings)
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

func TestCredentials_AreGeneratedOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := loadCredentials(dir)
	must(t, err)
	again, err := loadCredentials(dir)
	must(t, err)
	if first != again {
		t.Error("the passwords differ after a restart")
	}
	other, err := loadCredentials(t.TempDir())
	must(t, err)
	if first.Courier == other.Courier || first.Courier == first.Reader || len(first.Courier) < 26 {
		t.Error("passwords are equal or short, want 128 random bits each")
	}
	info, err := os.Stat(filepath.Join(dir, "credentials.json"))
	must(t, err)
	if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != 0o600 {
		t.Errorf("mode of the passwords = %o, want 600", got)
	}
}

func TestCredentials_RejectADamagedFile(t *testing.T) {
	for _, content := range []string{"", "{", `{"courier":"a"}`, `{"courier":1,"reader":2}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, "credentials.json")
		must(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := loadCredentials(dir); err == nil {
			t.Errorf("loadCredentials with %q: no error", content)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != content {
			t.Errorf("credentials file %q was changed to %q (%v)", content, kept, err)
		}
	}
}

func TestReadPorts(t *testing.T) {
	for _, c := range []struct {
		content   string
		http, tcp int
		ok        bool
	}{
		{"8123\t9000\n", 8123, 9000, true},
		{"8123\t9000", 0, 0, false}, // still being written
		{"8123\n", 0, 0, false},
		{"", 0, 0, false},
		{"0\t9000\n", 0, 0, false},
		{"8123\t70000\n", 0, 0, false},
		{"a\tb\n", 0, 0, false},
	} {
		path := filepath.Join(tree(t, map[string][]byte{"ports": []byte(c.content)}), "ports")
		http, tcp, ok := readPorts(path)
		if ok != c.ok || ok && (http != c.http || tcp != c.tcp) {
			t.Errorf("ports of %q = %d, %d, %t, want %d, %d, %t", c.content, http, tcp, ok,
				c.http, c.tcp, c.ok)
		}
	}
}

// console is the output of engine 26.7.3 when a port is taken.
const console = "host: engine library 26.7.3\nLogging warning to " +
	"/d/run/engine.log\n\x1b[0J\x1b[?25hClickHouse local version 26.7.2.1.\n\n" +
	"SYSTEM START LISTEN HTTP\n\nReceived exception:\n" +
	"Code: 210. DB::Exception: Listen [127.0.0.1]:8123 failed: Poco::Exception. Code: 1000, e.code() = 98, " +
	"Net Exception: Address already in use: 127.0.0.1:8123 (version 26.7.2.1). (NETWORK_ERROR)\n" +
	"\n\x1b[?2004h:) "

func TestException(t *testing.T) {
	want := "Code: 210. DB::Exception: Listen [127.0.0.1]:8123 failed: Poco::Exception. Code: 1000, e.code() " +
		"= 98, Net Exception: Address already in use: 127.0.0.1:8123 (version 26.7.2.1). (NETWORK_ERROR)"
	if got := exception(console); got != want {
		t.Errorf("exception() = %q, want %q", got, want)
	}
	if got := exception("SELECT 'Code: 1. DB::Exception: no'\nOk.\n"); got != "" {
		t.Errorf("exception() of a quoted exception = %q, want none", got)
	}
}

func TestLastLine(t *testing.T) {
	for log, want := range map[string]string{
		console: ":)",
		"host: engine library 26.7.3\nhost: load engine library /x: not there\n\n": "load engine library /x: not there",
		"\x1b[?2004lBye.\r\n": "Bye.",
		"":                    "",
	} {
		if got := lastLine(log); got != want {
			t.Errorf("lastLine(%q) = %q, want %q", log, got, want)
		}
	}
}

func TestUnconfined(t *testing.T) {
	if got := unconfined(
		"host: not confined: the kernel has no Landlock\nhost: engine library 26.7.3\n",
	); got != "the kernel has no Landlock" {
		t.Errorf("unconfined() = %q, want the reason", got)
	}
	if got := unconfined(console); got != "" {
		t.Errorf("unconfined() = %q, want none", got)
	}
}

func TestRestartDelay_Grows(t *testing.T) {
	for failures, want := range []time.Duration{
		100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000,
	} {
		if got := restartDelay(failures, 10*time.Second); got != want*time.Millisecond {
			t.Errorf("restartDelay(%d) = %v, want %v", failures, got, want*time.Millisecond)
		}
	}
	if got := restartDelay(1<<40, time.Second); got != time.Second {
		t.Errorf("restartDelay after many failures = %v, want the maximum", got)
	}
}
