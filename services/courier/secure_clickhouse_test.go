//go:build linux && amd64 && !noengine

package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
)

// Passwords of the users in deploy/clickhouse.
var tablePasswords = map[string]string{
	"courier": "of-the-store-1",
	"reader":  "of-the-reader-2",
	"trainer": "of-the-trainer-3",
}

// startTables runs the engine as a server with the users of deploy/clickhouse, and returns its
// native port.
func startTables(t *testing.T) int {
	t.Helper()
	library := testLibrary(t)
	if library == "" {
		t.Skip("no ClickHouse engine")
	}
	run, data := t.TempDir(), t.TempDir()
	port := storetest.FreePort(t)
	write := func(name, text string) {
		path := filepath.Join(run, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.xml",
		fmt.Sprintf("<clickhouse><path>%s</path><users_config>%s/users.xml</users_config>"+
			"<listen_host>127.0.0.1</listen_host><tcp_port>%d</tcp_port><logger>"+
			"<level>warning</level><log>%s/log</log><console>0</console></logger></clickhouse>",
			data, run, port, run))
	write("users.xml",
		"<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default>"+
			"<password></password><profile>default</profile><quota>default</quota></default>"+
			"</users></clickhouse>")
	deploy := filepath.Join("..", "..", "deploy", "clickhouse")
	write("config.d/courier.xml", read(t, filepath.Join(deploy, "config.xml")))
	write("users.d/courier.xml", read(t, filepath.Join(deploy, "users.xml")))
	write("users.d/trainer.xml", read(t, filepath.Join(deploy, "trainer.xml")))
	life, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program(t), engineHostCommand, "-library", library, "-store", data, "--",
		"--config-file="+filepath.Join(run, "config.xml"), "--path="+
			data, "--listen_host=127.0.0.1",
		fmt.Sprintf("--tcp_port=%d", port), "--interactive", "--disable_suggestion",
		"--progress=off", "--history_file=/dev/null", "--query=SYSTEM START LISTEN TCP")
	c.Dir, c.ExtraFiles = run, []*os.File{life}
	c.Env = []string{
		"HOME=" + run, "TERM=dumb", "PATH=/nonexistent",
		"COURIER_CLICKHOUSE_PASSWORD=" + tablePasswords["courier"],
		"COURIER_CLICKHOUSE_READER_PASSWORD=" +
			tablePasswords["reader"], "COURIER_CLICKHOUSE_TRAINER_PASSWORD=" +
			tablePasswords["trainer"],
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = life.Close() // the child has a copy
	t.Cleanup(func() {
		_ = end.Close() // stops the engine
		_ = c.Wait()    // the status is usually that of a signal
	})
	return port
}

// Each user of deploy/clickhouse can do its work on a real engine. The trainer and the reader cannot
// change anything, and no user can create users.
func TestSecure_UsersOfTheTables(t *testing.T) {
	port := startTables(t)
	as := func(user string) *store.Database {
		u := url.URL{
			Scheme: "clickhouse", User: url.UserPassword(user, tablePasswords[user]),
			Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/courier",
		}
		d, err := store.Open(t.Context(), store.Options{
			URL: u.String(),
		}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() }) // the server may have ended
		return d
	}
	writer := as("courier")
	if err := writer.Migrate(within(t, patience)); err != nil {
		t.Fatalf("create the tables as the store: %v", err)
	}
	for _, c := range []struct {
		statement string
		allowed   string // users
	}{
		{"INSERT INTO job_epoch (event_id) VALUES ('x')", "courier"},
		{"ALTER TABLE job_epoch DELETE WHERE event_id = 'x'", "courier"},
		{"TRUNCATE TABLE job_epoch", "courier"},
		{"CREATE TABLE mine (a UInt8) ENGINE = MergeTree ORDER BY a", "courier"},
		{"OPTIMIZE TABLE mine", "courier"},
		{"CREATE USER mallory", ""},
		{"GRANT SELECT ON *.* TO reader", ""},
		{"CREATE TABLE files (a String) ENGINE = File(CSV, 'x.csv')", ""},
		{"SYSTEM SHUTDOWN", ""},
		{"INSERT INTO FUNCTION url('http://127.0.0.1:1/', CSV, 'a String') VALUES ('x')", ""},
	} {
		for user := range tablePasswords {
			err := as(user).Exec(within(t, patience), c.statement)
			if may := strings.Contains(c.allowed, user); may != (err == nil) {
				t.Errorf("%s: %s = %v, want success: %t", user, c.statement, err, may)
			} else if !may && !strings.Contains(err.Error(), "ACCESS_DENIED") &&
				!strings.Contains(err.Error(), "Not enough privileges") &&
				!strings.Contains(err.Error(), "readonly mode") {
				t.Errorf("%s: %s = %v, want a denial", user, c.statement, err)
			}
		}
	}
	for user := range tablePasswords {
		if _, err := count(t, as(user), "SELECT count() AS n FROM jobs"); err != nil {
			t.Errorf("read as %s: %v", user, err)
		}
	}
	if err := store.NewHistory(as("trainer")).Events(within(t, patience), time.Time{}, func(schemas.Event) error {
		return nil
	}); err != nil {
		t.Errorf("read the history as the trainer: %v", err)
	}
}
