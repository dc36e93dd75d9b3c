package engine

import (
	"path/filepath"
	"testing"
	"time"
)

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
