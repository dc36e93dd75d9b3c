package bus

import (
	"testing"

	"courier/schemas"
)

// A decoder that panics on a message makes it one that cannot be read.
func TestParse_APanicIsAnError(t *testing.T) {
	decode := func(string, []byte) ([]schemas.Event, error) { panic("of the test") }
	events, err := parseWith(decode, schemas.JobSubject("a", schemas.EventEpoch), []byte("{}"))
	if err == nil || events != nil {
		t.Errorf("parse = %v, %v, want an error", events, err)
	}
}
