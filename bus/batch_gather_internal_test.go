package bus

import (
	"testing"
	"time"
)

func TestParseAckSubject(t *testing.T) {
	t.Parallel()
	for ack, want := range map[string]logPosition{
		"$JS.ACK.NODE.store-NODE.1.25001.25007.1790000000000000001.12":   {25001, time.Unix(1_790_000_000, 1)},
		"$JS.ACK.hub.AbCdEf.NODE.store-NODE.2.7.9.1790000000000000002.0": {7, time.Unix(1_790_000_000, 2)},
		"$JS.ACK._.AbCdEf.NODE.store-NODE.1.18446744073709551615.9.1790000000000000003.0.x": {
			18446744073709551615,
			time.Unix(1_790_000_000, 3),
		},
	} {
		if got, err := parseAckSubject(ack); err != nil || got.sequence != want.sequence || !got.at.Equal(want.at) {
			t.Errorf("parseAckSubject(%s) = %v, %v, want %v", ack, got, err, want)
		}
	}
	for _, ack := range []string{
		"",
		"_INBOX.x.y",
		"$JS.ACK.NODE.store-NODE.1.x.7.1790000000000000001.12",
		"$JS.ACK.NODE.store-NODE.1.6.7",
		"a.b.NODE.store-NODE.1.6.7.1790000000000000001.12",
	} {
		if got, err := parseAckSubject(ack); err == nil {
			t.Errorf("parseAckSubject(%q) = %v, want an error", ack, got)
		}
	}
}
