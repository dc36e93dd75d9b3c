package store_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"courier/store/storetest"
)

// TestMain runs the tests, or a victim of TestStore_IsKilled.
func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		os.Exit(victim())
	}
	overlapWaits()
	os.Exit(storetest.Main(m))
}

// overlapWaits lets more tests run in parallel than there are processors, because most of them wait
// for engines, leases and intervals. The flag -parallel prevails.
func overlapWaits() {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		// The flag exists in every test binary.
		_ = flag.Set("test.parallel", strconv.Itoa(max(4, 2*runtime.GOMAXPROCS(0))))
	}
}
