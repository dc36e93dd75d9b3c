package main

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeCerts runs courier certs and returns its output.
func makeCerts(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return courier(t, append([]string{"certs"}, args...)...)
}

// contents returns the files of a directory, and checks that only the owner can read them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, want that of a file for its owner (%v)", e.Name(),
				info.Mode(), err)
		}
		all[e.Name()] = read(t, filepath.Join(dir, e.Name()))
	}
	return all
}

func TestCerts_NeverOverwrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if out, err := makeCerts(t, "--out", dir, "--person", "ada", "--rights", rights); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := contents(t, dir)
	for _, name := range []string{
		"ca.crt", "ca.key", "nats.crt", "nats.key", "client.crt", "client.key", "advisor.nk",
		"operator.nk", "worker.nk", "ada.nk", "ada.token", "tokens", "nkeys.env", "users.conf",
		"routes.crt", "courier.password", "trainer.password", "reader.password", "passwords.xml",
	} {
		if first[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	safe := filepath.Join(t.TempDir(), "ca.key")
	if err := os.Rename(filepath.Join(dir, "ca.key"), safe); err != nil {
		t.Fatal(err)
	}
	if out, err := makeCerts(t, "--out", dir, "--rights", rights); err != nil ||
		strings.Contains(out, "made") || strings.Contains(out, "differs") {
		t.Errorf("second run: %v\n%s\nwant no changes", err, out)
	}
	if err := os.Rename(safe, filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "nats.crt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "nats.key")); err != nil {
		t.Fatal(err)
	}
	if out, err := makeCerts(t, "--out", dir, "--person", "bob", "--rights", rights); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	second := contents(t, dir)
	for name, text := range first {
		if same := second[name] == text; same == strings.HasPrefix(name, "nats.") {
			t.Errorf("%s is unchanged: %t; want new files only in place of deleted ones", name, same)
		}
	}
	for name, want := range map[string][]string{
		"users.conf.new": {"person.ada.job.>", "person.bob.job.>", "_INBOX_bob.>"},
		"tokens.new":     {" ada submitter", " bob submitter", " operator admin"},
	} {
		for _, w := range want {
			if !strings.Contains(second[name], w) {
				t.Errorf("%s has no %q", name, w)
			}
		}
	}
	if strings.Contains(second["users.conf.new"], "$COURIER_NKEY") {
		t.Error("a placeholder of an nkey was not replaced")
	}
	third := maps.Clone(second)
	if _, err := makeCerts(t, "--out", dir, "--person", "bob", "--rights", rights); err != nil ||
		!maps.Equal(third, contents(t, dir)) {
		t.Errorf("a repeated run changes files (%v)", err)
	}
}

func TestCerts_AreOfTheirAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if out, err := makeCerts(t, "--out", dir, "--host", "nats.example.org,10.1.2.3"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(read(t, filepath.Join(dir, "ca.crt")))) {
		t.Fatal("ca.crt contains no certificate")
	}
	for name, hosts := range map[string][]string{
		"nats": {
			"nats",
			"nats-1",
			"nats-3",
			"nats1",
			"nats3",
			"127.0.0.1",
			"localhost",
			"nats.example.org",
			"10.1.2.3",
		},
		"clickhouse": {"clickhouse", "10.1.2.3"},
		"gateway":    {"gateway", "localhost"},
	} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"),
			filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hosts {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: h}); err != nil {
				t.Errorf("verify %s.crt for host %s: %v", name, h, err)
			}
		}
	}
	for name, usage := range map[string]x509.ExtKeyUsage{
		"client":  x509.ExtKeyUsageServerAuth,
		"nats":    x509.ExtKeyUsageClientAuth,
		"gateway": x509.ExtKeyUsageClientAuth,
	} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"),
			filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots:     pool,
			KeyUsages: []x509.ExtKeyUsage{usage},
		}); err == nil {
			t.Errorf("%s.crt is valid for both client and server, want one", name)
		}
	}
	routes, err := tls.LoadX509KeyPair(filepath.Join(dir, "routes.crt"),
		filepath.Join(dir, "routes.key"))
	if err != nil {
		t.Fatal(err)
	}
	itself := x509.NewCertPool()
	itself.AddCert(routes.Leaf)
	for _, usage := range routes.Leaf.ExtKeyUsage {
		for _, h := range []string{"nats1", "nats2", "nats3", "nats.example.org"} {
			o := x509.VerifyOptions{Roots: itself, DNSName: h, KeyUsages: []x509.ExtKeyUsage{usage}}
			if _, err := routes.Leaf.Verify(o); err != nil {
				t.Errorf("verify routes.crt for host %s: %v", h, err)
			}
			o.Roots = pool
			if _, err := routes.Leaf.Verify(o); err == nil {
				t.Error("routes.crt is signed by the authority of clients")
			}
		}
	}
	if len(routes.Leaf.ExtKeyUsage) != 2 {
		t.Errorf("routes.crt has the usages %v, want client and server", routes.Leaf.ExtKeyUsage)
	}
}

// The folders of the containers have the current files. Only the containers can read them.
func TestCerts_FillsFoldersOfContainers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := makeCerts(t, "--out", dir, "--containers"); err == nil ||
		!strings.Contains(err.Error(), "--rights") {
		t.Errorf("courier certs without rights = %v, want a hint at --rights", err)
	}
	if out, err := makeCerts(t, "--out", dir, "--rights", rights, "--containers"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]os.FileMode{
		".":                         0o700,
		"containers":                0o700,
		"containers/store":          0o755,
		"containers/store/store.nk": 0o644,
		"store.nk":                  0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v (%v), want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "tokens"), []byte("# none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := makeCerts(t, "--out", dir, "--containers")
	if got := read(t, filepath.Join(dir, "containers", "gateway", "tokens")); err != nil ||
		got != "# none\n" || strings.Count(out, "copied") != 1 {
		t.Errorf("after a change of tokens: error %v, token file %[3]q; want an empty list, copied once\n%[2]s",
			err, out, got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "containers", "*", "*.tmp")); err != nil ||
		len(left) > 0 {
		t.Errorf("temporary files %v remain (%v)", left, err)
	}
}
