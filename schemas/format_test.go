package schemas_test

import (
	"testing"

	"courier/schemas"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{schemas.FormatCPUs(1), "1 CPU"},
		{schemas.FormatCPUs(0), "0 CPUs"},
		{schemas.FormatCount(1, "epoch"), "1 epoch"},
		{schemas.FormatCount(20, "epoch"), "20 epochs"},
		{schemas.FormatProbability(0), "under 0.001"},
		{schemas.FormatProbability(0.0006), "0.001"},
		{schemas.FormatProbability(0.9623), "0.962"},
		{schemas.FormatProbability(0.9994), "0.999"},
		{schemas.FormatProbability(0.99951), "over 0.999"},
		{schemas.FormatProbability(1), "over 0.999"},
		{schemas.FormatError(schemas.TargetEpochTime, 0.021), "mean error 2.1 %"},
		{schemas.FormatError(schemas.TargetAccuracy, 0.004), "mean error 0.4 points"},
		{schemas.FormatError(schemas.TargetStartup, 0), "mean error unknown"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
