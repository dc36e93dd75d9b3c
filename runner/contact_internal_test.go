package runner

import (
	"testing"
	"time"

	"courier/schemas"
)

func TestContact(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	const beat, look = true, false
	type step struct {
		seconds  int
		isBeat   bool
		isSilent bool          // look: it has become silent
		silent   time.Duration // beat: for how long there was none
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"no heartbeat ever arrived", []step{{3600, look, false, 0}}},
		{"heartbeats arrive", []step{
			{0, beat, false, 0}, {10, beat, false, 0}, {35, look, false, 0}, {39, beat, false, 0},
		}},
		{"silent, which is said once, and back", []step{
			{0, beat, false, 0}, {31, look, true, 0}, {32, look, false, 0}, {95, beat, false, 95 * time.Second},
			{100, look, false, 0}, {130, look, true, 0},
		}},
		{"this process was paused", []step{
			{0, beat, false, 0}, {40, beat, false, 40 * time.Second}, {41, look, false, 0},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k Contact
			for i, s := range c.steps {
				at := begin.Add(time.Duration(s.seconds) * time.Second)
				if s.isBeat {
					if got := k.Arrived(at); got != s.silent {
						t.Errorf("step %d: silent for %s, want %s", i, got, s.silent)
					}
				} else if got := k.BecomesSilent(at); got != s.isSilent {
					t.Errorf("step %d: becomes silent %t, want %t", i, got, s.isSilent)
				}
			}
		})
	}
	if schemas.Silence+defaultGrace >= schemas.LostAfter {
		t.Errorf("a job that is stopped after %s may still run when it counts as lost, after %s",
			schemas.Silence, schemas.LostAfter)
	}
}
