package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"courier/store"
	"courier/store/storetest"
)

// startTLSTables runs a ClickHouse server with deploy/clickhouse/tls.xml and the certificates of a
// directory. It returns its secure ports, and the ports that the file removes.
func startTLSTables(t *testing.T, keys string) (native, https int, plain []int) {
	t.Helper()
	program, err := exec.LookPath("clickhouse-server")
	if err != nil {
		t.Skip("SKIPPED: NO CLICKHOUSE SERVER: the engine of the other tests cannot listen by TLS")
	}
	dir := t.TempDir()
	native, https, plain = storetest.FreePort(t), storetest.FreePort(t), []int{
		storetest.FreePort(t),
		storetest.FreePort(t),
	}
	for name, text := range map[string]string{
		"config.xml": fmt.Sprintf("<yandex><path>%s/data/</path><tmp_path>%s/tmp/</tmp_path>"+
			"<users_config>users.xml</users_config><default_profile>default</default_profile>"+
			"<default_database>default</default_database>"+
			"<mark_cache_size>268435456</mark_cache_size>"+
			"<listen_host>127.0.0.1</listen_host><tcp_port>%d</tcp_port>"+
			"<http_port>%d</http_port><logger><level>information</level><console>1</console>"+
			"</logger></yandex>",
			dir, dir, plain[0], plain[1]),
		"users.xml": "<yandex><profiles><default/></profiles><quotas><default/></quotas><users>" +
			"<default><password>of-nobody</password><networks><ip>127.0.0.1</ip></networks>" +
			"<profile>default</profile><quota>default</quota></default></users></yandex>",
		// Releases before 2021 accept only the old name of the root element; later ones accept both.
		"config.d/tls.xml": strings.NewReplacer("clickhouse>", "yandex>", "9440<",
			fmt.Sprintf("%d<", native), "8443<", fmt.Sprintf("%d<", https), "/etc/courier/tls",
			keys).
			Replace(read(t, filepath.Join("..", "..", "deploy", "clickhouse", "tls.xml"))),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--config-file="+filepath.Join(dir, "config.xml"))
	c.Dir, c.Stdout, c.Stderr = dir, log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // its data is not needed
		_ = c.Wait()
		if t.Failed() {
			t.Log(read(t, log.Name()))
		}
		_ = log.Close()
	})
	return native, https, plain
}

// With deploy/clickhouse/tls.xml the store and courier health connect to a real server by TLS. The
// server rejects plain connections and versions older than TLS 1.2.
func TestSecure_TLSSettingsOnAServer(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if out, err := makeCerts(t, "--out", keys); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	native, https, plain := startTLSTables(t, keys)
	ca, password := filepath.Join(keys, "ca.crt"), filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("of-nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(host, ca string) error {
		d, err := store.Open(t.Context(), store.Options{
			URL:          fmt.Sprintf("clickhouse://default@%s:%d/default", host, native),
			CAFile:       ca,
			PasswordFile: password,
		}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		var rows []struct {
			Version string `ch:"version"`
		}
		return d.Query(within(t, patience), &rows, "SELECT version() AS version")
	}
	await(t, "the server", func() bool { return ask("127.0.0.1", ca) == nil })
	if err := ask("localhost", ""); err == nil {
		t.Error("the native port answers without TLS")
	}
	other := filepath.Join(t.TempDir(), "keys")
	if _, err := makeCerts(t, "--out", other); err != nil {
		t.Fatal(err)
	}
	if err := ask("127.0.0.1", filepath.Join(other, "ca.crt")); err == nil ||
		!strings.Contains(err.Error(), "x509") {
		t.Errorf("connect with a different authority = %v, want an error", err)
	}
	out, err := courier(t, "health", "--ca", ca, fmt.Sprintf("https://localhost:%d/ping", https))
	if err != nil || out != "Ok.\n" {
		t.Errorf("courier health: %v, %q", err, out)
	}
	for _, port := range []int{native, https} {
		// the version is under test
		old := &tls.Config{
			InsecureSkipVerify: true,
			MinVersion:         tls.VersionTLS10,
			MaxVersion:         tls.VersionTLS11,
		}
		if conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), old); err == nil {
			_ = conn.Close()
			t.Errorf("port %d accepts TLS 1.1", port)
		}
	}
	for _, port := range plain {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = conn.Close()
			t.Errorf("the server listens on %d, which tls.xml removes", port)
		}
	}
}
