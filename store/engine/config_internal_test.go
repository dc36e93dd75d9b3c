package engine

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the golden files")

// exampleSettings are the default settings of `courier all`.
func exampleSettings() settings {
	return settings{
		store: "/data/store", run: "/data/run", httpPort: 8123, tcpPort: 9000, nonce: "courier-abc",
		database: "courier", courierPassword: "one", readerPassword: "two", memoryBytes: 2_000_000_000,
	}
}

func TestConfiguration_MatchesTheGoldenFiles(t *testing.T) {
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
			if err != nil {
				t.Fatal(err)
			}
			users, err := usersXML(c.settings)
			if err != nil {
				t.Fatal(err)
			}
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
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestConfiguration_EscapesNames(t *testing.T) {
	s := exampleSettings()
	s.store, s.nonce = `/a & b/<c>/it's`, `</display_name><evil/>`
	config, err := configXML(s)
	if err != nil {
		t.Fatal(err)
	}
	elements := readXML(t, string(config))
	if got := elements["clickhouse/path"]; got != s.store {
		t.Errorf("path = %q, want %q", got, s.store)
	}
	if got := elements["clickhouse/display_name"]; got != s.nonce {
		t.Errorf("display_name = %q, want %q", got, s.nonce)
	}
}

func TestUsers_ContainNoPassword(t *testing.T) {
	s := exampleSettings()
	s.courierPassword, s.readerPassword = "correct-horse", "battery-staple"
	users, err := usersXML(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{s.courierPassword, s.readerPassword} {
		if strings.Contains(string(users), password) {
			t.Errorf("users.xml contains the password %q", password)
		}
	}
	elements := readXML(t, string(users))
	if got, want := elements["clickhouse/users/courier/password_sha256_hex"], passwordHash(
		s.courierPassword,
	); got != want {
		t.Errorf("hash of courier = %s, want %s", got, want)
	}
}

// readXML returns the text of each element by its path, failing on bad XML.
func readXML(t *testing.T, document string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var path []string
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("read XML: %v in\n%s", err, document)
		}
		switch token := token.(type) {
		case xml.StartElement:
			path = append(path, token.Name.Local)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			found[strings.Join(path, "/")] += string(token)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/data/run":  `'/data/run'`,
		`it's`:       `'it\'s'`,
		`back\slash`: `'back\\slash'`,
		`\'`:         `'\\\''`,
	} {
		if got := quote(text); got != want {
			t.Errorf("quote(%s) = %s, want %s", text, got, want)
		}
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
		{"quoted database", Options{DataDir: "/d", Database: "a`b"}, "database"},
		{"the engine's database", Options{DataDir: "/d", Database: "system"}, "database"},
		{"default", Options{DataDir: "/d", Database: "default"}, "database"},
	} {
		if err := setDefaults(&c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: setDefaults() = %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestSetDefaults_SetsDefaults(t *testing.T) {
	o := Options{DataDir: "relative"}
	if err := setDefaults(&o); err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(o.DataDir) || o.Database != "courier" || len(o.HostCommand) != 2 ||
		o.HostCommand[1] != "engine-host" {
		t.Errorf("setDefaults() = %+v, want an absolute directory, database courier and this program as host",
			o)
	}
	if memory := physicalMemory(); memory > 0 && o.MemoryBytes != max(memory/4, minMemoryBytes) {
		t.Errorf("memory = %d of %d bytes, want a quarter", o.MemoryBytes, memory)
	}
}
