package store_test

import (
	"testing"

	"courier/bus/bustest"
	"courier/store/storetest"
)

// The test kills ClickHouse twice while the store writes and messages keep arriving. ClickHouse
// restarts with the same data.
func TestStore_OutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	d := storetest.Open(t, server.Address(t))
	must(t, d.Migrate(t.Context()))
	b := bustest.New(t)
	finish := run(t, newStore(t, b, d))
	stop := publishAll(t, b)
	for range 2 {
		before := selectNumber(t, d, "SELECT max(sequence) AS n FROM log_position")
		awaitSequences(t, d, map[string]uint64{"JOB": before + 50, "NODE": before + 50})
		server.Kill(t)
		awaitSequences(t, d, map[string]uint64{"JOB": before + 60})
	}
	awaitSequences(t, d, stop())
	finish()
	compare(t, b, d)
}
