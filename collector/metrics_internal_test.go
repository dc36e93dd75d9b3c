package collector

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The wall clock may be set back after a sample was taken.
func TestAgeSince(t *testing.T) {
	if got := ageSince(time.Time{}); got != 0 {
		t.Errorf("age without a sample = %g, want 0", got)
	}
	if got := ageSince(time.Now().Add(time.Hour)); got != 0 {
		t.Errorf("age of a sample in the future = %g, want 0", got)
	}
	if got := ageSince(time.Now().Add(-time.Hour)); got < 3600 {
		t.Errorf("age of a sample of an hour ago = %g, want at least 3600", got)
	}
}

func TestCPUModelOf(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{
			"x86",
			"processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\n" +
				"model name\t: AMD EPYC 7763  64-Core Processor\n\nprocessor\t: 1\n" +
				"model name\t: AMD EPYC 7763  64-Core Processor\n",
			"AMD EPYC 7763 64-Core Processor",
		},
		{
			"POWER",
			"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2300.000000MHz\n",
			"POWER9, altivec supported",
		},
		{"MIPS", "system type\t\t: x\ncpu model\t\t: MIPS 74Kc V4.12\n", "MIPS 74Kc V4.12"},
		{
			"ARM with part numbers",
			"processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
			"",
		},
		{
			"different processors",
			"model name\t: big\nmodel name\t: little\nmodel name\t: big\n",
			"big and little",
		},
		{"empty", "", ""},
		{"a long name", "model name: " + strings.Repeat("ä", 100), strings.Repeat("ä", 64)},
		{"invalid UTF-8", "model name: a\xff\x00b\n", "a b"},
	} {
		if got := cpuModelOf(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }
