package bus

import (
	"testing"

	"courier/schemas"
)

// A message on which the decoder panics becomes a decoding error.
func TestDecode_PanicIsAnError(t *testing.T) {
	t.Parallel()
	parse := func(string, []byte) ([]schemas.Event, error) { panic("of the test") }
	events, err := decodeWith(parse, schemas.JobSubject("a", schemas.EventEpoch), []byte("{}"))
	if err == nil || events != nil {
		t.Errorf("decodeWith = %v, %v, want an error", events, err)
	}
}
