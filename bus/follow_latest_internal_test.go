package bus

import (
	"fmt"
	"testing"
)

// A follower of years does not remember all events, but those that may arrive twice after a reconnect.
func TestRecentIDs_AreBounded(t *testing.T) {
	var r recentIDs
	const events = 10 * maxRecentIDs
	for i := range events {
		if !r.add(fmt.Sprint(i)) {
			t.Fatalf("event %d is not new", i)
		}
		if n := len(r.current) + len(r.previous); n > 2*maxRecentIDs {
			t.Fatalf("%d IDs after %d events", n, i)
		}
	}
	for i := events - maxRecentIDs; i < events; i++ {
		if r.add(fmt.Sprint(i)) {
			t.Fatalf("event %d is forgotten after %d others", i, events-i)
		}
	}
}
