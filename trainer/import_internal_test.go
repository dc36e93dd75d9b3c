package trainer

import (
	"testing"
	"time"
)

// A fit waits for a pause in the import, and for at most maxImport.
func TestImportClock_RunsUntilAPause(t *testing.T) {
	begin := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	const pause = 5 * time.Second
	var c importClock
	if c.isRunning(begin, pause) {
		t.Error("an import runs before the first event")
	}
	at := begin
	for ; at.Before(begin.Add(maxImport)); at = at.Add(time.Second) {
		c.add(at)
		if !c.isRunning(at.Add(time.Second-1), pause) {
			t.Fatalf("the import has ended %s after its begin, at an event each second", at.Sub(begin))
		}
		if c.isRunning(at.Add(pause), pause) {
			t.Fatalf("the import goes on %s after its last event", pause)
		}
	}
	c.add(at)
	if c.isRunning(at, pause) {
		t.Errorf("the import defers fits for more than %s", maxImport)
	}
	later := at.Add(maxImport + time.Second)
	if c.add(later); !c.isRunning(later, pause) {
		t.Error("a later import does not run")
	}
}
