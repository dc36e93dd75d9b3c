//go:build linux && amd64 && !noengine

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEngine_RejectsAccessOutsideTheDatabase(t *testing.T) {
	o := withEngine(t)
	e := run(t, o)
	p := e.ready()
	query(t, p, "CREATE TABLE mine (x Int8) ENGINE = MergeTree ORDER BY x")
	table := func(engine string) string { return "CREATE TABLE other (x Int8) ENGINE = " + engine }
	for _, statement := range []string{
		"SELECT * FROM file('/etc/hostname', 'LineAsString')",
		"SELECT * FROM default.`/etc/hostname`",
		"SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'x String')",
		"SELECT * FROM s3('http://127.0.0.1:1/bucket/key.csv', 'CSV', 'x String')",
		"SELECT * FROM remote('127.0.0.1:1', 'system.one')",
		"SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
		"SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
		"SELECT * FROM icebergLocal('/tmp')",
		"SELECT * FROM executable('id', 'CSV', 'x String')",
		"SELECT 1 INTO OUTFILE '/tmp/never'",
		"INSERT INTO FUNCTION file('never.csv', 'CSV', 'x Int8') SELECT 1",
		"INSERT INTO FUNCTION url('http://127.0.0.1:1/', 'CSV', 'x Int8') SELECT 1",
		table("File(CSV)"), table("URL('http://127.0.0.1:1/', 'CSV')"), table(
			"S3('http://127.0.0.1:1/bucket/key.csv', 'CSV')",
		),
		table("Kafka"), table("NATS"), table("Executable('id', 'CSV')"), table(
			"Distributed('default', 'a', 'b')",
		),
		table("MergeTree ORDER BY x SETTINGS disk = disk(type = web, endpoint = 'http://127.0.0.1:1/')"),
		table("MergeTree ORDER BY x SETTINGS disk = disk(type = local, path = '/tmp/')"),
		table("MergeTree ORDER BY x SETTINGS storage_policy = 'other'"),
		table("Log SETTINGS disk = disk(type = web, endpoint = 'http://127.0.0.1:1/')"),
		"ALTER TABLE mine MODIFY SETTING disk = disk(type = web, endpoint = 'http://127.0.0.1:1/')",
		"CREATE TEMPORARY TABLE other (x String) ENGINE = File(CSV, '/etc/hostname')",
		"CREATE TABLE other AS file('/etc/hostname', 'LineAsString')",
		"CREATE DATABASE other ENGINE = Filesystem('/etc')",
		"CREATE DATABASE other ENGINE = MySQL('127.0.0.1:1', 'a', 'b', 'c')",
		"CREATE DICTIONARY other (x UInt64) PRIMARY KEY x SOURCE(HTTP(URL 'http://127.0.0.1:1/' FORMAT " +
			"'CSV')) LAYOUT(FLAT()) LIFETIME(0)",
		"CREATE NAMED COLLECTION other AS a = 1",
		"CREATE USER other", "GRANT SELECT ON *.* TO other", "CREATE ROLE other",
		"CREATE VIEW other SQL SECURITY NONE AS SELECT 1",
		"BACKUP TABLE mine TO File('/tmp/never')",
		"SELECT demangle('x') SETTINGS allow_introspection_functions = 1",
		"SYSTEM SHUTDOWN", "SYSTEM KILL", "SYSTEM STOP LISTEN HTTP", "SYSTEM STOP LISTEN TCP",
		"SYSTEM ENABLE FAILPOINT other",
	} {
		if answer, err := ask(p, courier(p), statement, ""); err == nil {
			t.Errorf("%s: allowed, with %q", statement, answer)
		}
	}
	if got := query(t, p, "SELECT 1"); got != "1" || e.ready().PID != p.PID {
		t.Errorf("afterwards SELECT 1 = %q in process %d, want 1 in %d", got, e.ready().PID, p.PID)
	}
}

// ClickHouse does not check a grant for the function file(). The sandbox of the host denies access.
func TestEngine_ReadsNoFileOfTheHost(t *testing.T) {
	o := withEngine(t)
	outside := filepath.Join(t.TempDir(), "secret.txt")
	must(t, os.WriteFile(outside, []byte("a secret"), 0o600))
	e := run(t, o)
	p := e.ready()
	if log := e.log.String(); strings.Contains(log, "not confined") {
		t.Skipf("this kernel cannot confine the engine: %s", log)
	}
	for _, u := range []user{courier(p), reader(p)} {
		for _, path := range []string{
			outside, "/etc/hostname", "/etc/passwd", "/proc/1/environ",
			filepath.Join(o.DataDir, "credentials.json"), "../credentials.json", "../run/../credentials.json",
		} {
			if answer, err := ask(p, u, "SELECT file('"+path+"')", ""); err == nil {
				t.Errorf("%s reads %s: %q", u.name, path, answer)
			}
		}
	}
}

func TestEngine_ReaderOnlyReads(t *testing.T) {
	p := run(t, withEngine(t)).ready()
	query(t, p, "CREATE TABLE mine (x Int8) ENGINE = MergeTree ORDER BY x")
	query(t, p, "INSERT INTO mine SELECT 7")
	query(t, p, "CREATE DATABASE other")
	query(t, p, "CREATE TABLE other.secret (x Int8) ENGINE = MergeTree ORDER BY x")
	if got, err := ask(p, reader(p), "SELECT x FROM mine", ""); err != nil || got != "7" {
		t.Errorf("reader's SELECT = %q, %v, want 7", got, err)
	}
	for _, statement := range []string{
		"SELECT * FROM other.secret", "SELECT * FROM system.users", "INSERT INTO mine SELECT 1",
		"DROP TABLE mine", "TRUNCATE TABLE mine",
		"CREATE TABLE another (x Int8) ENGINE = MergeTree ORDER BY x",
		"ALTER TABLE mine DELETE WHERE 1", "SYSTEM FLUSH LOGS", "KILL QUERY WHERE 1",
	} {
		if answer, err := ask(p, reader(p), statement, ""); err == nil {
			t.Errorf("%s: allowed for the reader, with %q", statement, answer)
		}
	}
}

// Any local program can log in as the console user.
func TestEngine_ConsoleUserCanDoNothing(t *testing.T) {
	t.Parallel()
	e := run(t, withEngine(t))
	p := e.ready()
	query(t, p, "CREATE TABLE mine (x Int8) ENGINE = MergeTree ORDER BY x")
	for _, statement := range []string{
		"SYSTEM STOP LISTEN HTTP", "SYSTEM STOP LISTEN TCP", "SYSTEM START LISTEN HTTP", "SYSTEM SHUTDOWN",
		"SELECT * FROM courier.mine", "SHOW TABLES FROM courier", "SELECT * FROM system.users", "CREATE DATABASE other",
	} {
		if answer, err := ask(p, user{"default", ""}, statement, ""); err == nil && answer != "" ||
			err == nil && strings.HasPrefix(statement, "SYSTEM") {
			t.Errorf("%s: allowed without a password, with %q", statement, answer)
		}
	}
	for _, u := range []user{{"courier", ""}, {"courier", "wrong"}, {"reader", ""}, {"nobody", ""}} {
		if answer, err := ask(p, u, "SELECT 1", ""); err == nil {
			t.Errorf("%s with password %q logs in: %q", u.name, u.password, answer)
		}
	}
	if got := query(t, p, "SELECT 1"); got != "1" {
		t.Errorf("SELECT 1 after the rejected statements = %q, want 1", got)
	}
}
