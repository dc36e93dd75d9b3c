package schemas_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"courier/schemas"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		text  string
		want  time.Duration
		error string // part of the message; "": no error
	}{
		{text: "10m", want: 10 * time.Minute},
		{text: "1h30m", want: 90 * time.Minute},
		{text: "2d", want: 2 * day},
		{text: "1d12h", want: 36 * time.Hour},
		{text: "0.5d", want: 12 * time.Hour},
		{text: "6h 28m", want: 6*time.Hour + 28*time.Minute},
		{text: "2d 3h", want: 2*day + 3*time.Hour},
		{text: "48.5 s", want: 48500 * time.Millisecond},
		{text: "1 0m", error: "is not a duration"},
		{text: " ", error: "is not a duration"},
		{text: "-1d1h", want: -25 * time.Hour},
		{text: "10", error: `"10": missing unit, use for example "10m"`},
		{text: "1d10", error: "missing unit"},
		{text: "1d-2h", error: "is not a duration"},
		{text: "", error: "is not a duration"},
		{text: "ten minutes", error: "is not a duration"},
		{text: "1000000d", error: "is longer than"},
	} {
		got, err := schemas.ParseDuration(c.text)
		if c.error == "" && (err != nil || got != c.want) {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
		if c.error != "" && (err == nil || !strings.Contains(err.Error(), c.error)) {
			t.Errorf("%q: got error %v, want one with %q", c.text, err, c.error)
		}
	}
}

func TestFormatSeconds(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    string
	}{
		{0, "0 s"}, {
			0.0001, "under 1 ms",
		}, {0.1141, "0.114 s"}, {1.4812, "1.48 s"}, {48.74, "48.7 s"},
		{99.9, "99.9 s"}, {99.96, "1m 40s"}, {458, "7m 38s"}, {3599.4, "59m 59s"}, {3599.6, "1h"},
		{23_300, "6h 28m"}, {86_399, "1d"}, {183_600, "2d 3h"}, {172_800, "2d"},
		{600, "10m"}, {-15.4, "-15.4 s"},
		{-3600, "-1h"}, {math.NaN(), "unknown"}, {math.Inf(1), "unknown"},
	} {
		if got := schemas.FormatSeconds(c.seconds); got != c.want {
			t.Errorf("%v seconds: %q, want %q", c.seconds, got, c.want)
		}
	}
}

// The result is the argument or slightly longer, and is printed without rounding.
func TestCeilSeconds(t *testing.T) {
	for _, v := range []float64{
		0.0004, 0.1141, 0.9995, 1, 1.2, 1.4812, 9.991, 9.996, 48.74, 99.9, 99.91, 99.96,
		180.16, 458, 3599.2, 3599.6, 3600, 23_300, 86_360, 86_399, 86_401, 183_600, 183_601,
	} {
		got := schemas.CeilSeconds(v)
		written, err := schemas.ParseDuration(schemas.FormatSeconds(got))
		if err != nil || math.Abs(written.Seconds()-got) > 1e-6 {
			t.Errorf("CeilSeconds(%v) = %v, formatted as %q (%v), want the same duration",
				v, got, schemas.FormatSeconds(got), err)
		}
		if got < v-1e-9 || got > 1.05*v+0.001 {
			t.Errorf("CeilSeconds(%v) = %v, want the argument or slightly more", v, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"10m", "2d", "1d12h", "-0.5d3m", "d", "9223372036s", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := schemas.ParseDuration(s)
		plain, plainErr := time.ParseDuration(s)
		if plainErr == nil && (err != nil || got != plain) {
			t.Errorf("%q: %v, %v; Go reads %v", s, got, err, plain)
		}
	})
}
