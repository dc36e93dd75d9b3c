package store_test

import (
	"os"
	"testing"

	"courier/store/storetest"
)

// TestMain runs the tests, or a victim of TestStore_IsKilled.
func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		os.Exit(victim())
	}
	os.Exit(storetest.Main(m))
}
