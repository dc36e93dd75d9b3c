package store_test

import (
	"os"
	"testing"

	"courier/store/storetest"
)

// TestMain runs the tests, or, if the environment says so, a store in a process
// of its own that TestStore_IsKilled kills.
func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		os.Exit(victim())
	}
	os.Exit(storetest.Main(m))
}
