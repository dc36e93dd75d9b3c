package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A token that was removed from the file becomes invalid. An invalid or missing file changes
// nothing.
func TestTokens_ReloadTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	written := time.Unix(1_790_000_000, 0)
	write := func(text string) {
		t.Helper()
		written = written.Add(time.Second)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, written, written); err != nil { // a second after the previous version
			t.Fatal(err)
		}
	}
	line := func(user string) string {
		sum := sha256.Sum256([]byte("token-of-" + user))
		return hex.EncodeToString(sum[:]) + " " + user + " reader\n"
	}
	write(line("ada"))
	tokens, err := ReadTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	now := time.Unix(1_790_000_000, 0)
	for _, c := range []struct {
		what   string
		change func()
		passes time.Duration
		ada    bool
		bob    bool
		said   string
	}{
		{"initially", func() {}, time.Hour, true, false, ""},
		{
			"bob in place of ada, a moment later", func() { write(line("bob")) }, time.Millisecond,
			true, false, "",
		},
		{"and a second later", func() {}, checkInterval, false, true, "tokens reloaded"},
		{
			"nonsense", func() { write("nonsense\n") }, checkInterval, false, true,
			"keeping the previous ones",
		},
		{"the same nonsense", func() {}, checkInterval, false, true, ""},
		{
			"no file", func() { _ = os.Remove(file) }, checkInterval, false, true,
			"keeping the previous ones",
		},
		{
			"both", func() { write(line("ada") + line("bob")) }, checkInterval, true, true,
			"tokens reloaded",
		},
	} {
		c.change()
		now = now.Add(c.passes)
		log.Reset()
		tokens.refresh(now, slog.New(slog.NewTextHandler(&log, nil)))
		_, ada := tokens.find("token-of-ada")
		_, bob := tokens.find("token-of-bob")
		if ada != c.ada || bob != c.bob || c.said == "" && log.Len() > 0 ||
			!strings.Contains(log.String(), c.said) {
			t.Errorf("%s: ada %t, bob %t, log %q; want %t, %t, %q", c.what, ada, bob,
				log.String(), c.ada, c.bob, c.said)
		}
	}
}
