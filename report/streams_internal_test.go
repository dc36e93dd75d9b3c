package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Changes are printed first, and then the limits that NATS cannot change, with the reason of the
// server.
func TestStreams_ListsChangesAndFailures(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	node := schemas.Streams()[1]
	stored := node
	stored.MaxBytes = -1
	durable := bus.ConsumerState{
		Name:        "store-NODE",
		Durable:     true,
		Declared:    true,
		Pending:     7,
		AckPending:  3,
		Redelivered: 2,
	}
	before := []bus.StreamState{{Declared: node, Found: true, Differences: []bus.Difference{
		{Setting: "storage", Have: "memory", Want: "file"}, {
			Setting: "max_age",
			Have:    "1h",
			Want:    "at least 168h",
		}}, Consumers: []bus.ConsumerState{durable}}}
	before[0].Consumers[0].Differences = []bus.Difference{{
		Setting: "ack_policy",
		Have:    "explicit",
		Want:    "all",
	}}
	after := []bus.StreamState{{
		Declared: node,
		Server:   stored,
		Found:    true,
		Messages: 5,
		Bytes:    1536,
		OldestAt: now.Add(-26 * time.Hour),
		Differences: []bus.Difference{{
			Setting: "storage",
			Have:    "memory",
			Want:    "file",
			Failure: "it can not",
		}},
		Consumers: before[0].Consumers,
	}}
	r := NewStreams(after, ChangedStreams(before, after), now)
	var out bytes.Buffer
	if err := r.WriteText(&out, true); err != nil {
		t.Fatal(err)
	}
	want := `stream  messages  bytes    max bytes                   oldest  max age  window  replicas  state
NODE    5         1.5 KiB  unlimited (declared 1 GiB)  26h     7d       2m      1         differs

stream  consumer    pending  ack pending  redelivered  state
NODE    store-NODE  7        3            2            differs

NODE: max_age changed from 1h to 168h
NODE: storage is memory, want file; NATS cannot change it: it can not
NODE store-NODE: ack_policy is explicit, want all
`
	if got := out.String(); got != want {
		t.Errorf("WriteText wrote\n%s\nwant\n%s", got, want)
	}
	if r.OK {
		t.Error("a report with differences is not ok")
	}
}

func TestAgeText(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    string
	}{
		{-3, "0s"},
		{0.4, "0s"},
		{59, "59s"},
		{60, "1m"},
		{61, "1m1s"},
		{3600, "1h"},
		{3661, "1h1m"},
		{47 * 3600, "47h"},
		{48 * 3600, "2d"},
		{49*3600 + 59, "2d1h"},
	} {
		if got := ageText(c.seconds); got != c.want {
			t.Errorf("ageText(%g) = %s, want %s", c.seconds, got, c.want)
		}
	}
}

func TestSizeText(t *testing.T) {
	var got []string
	for _, n := range []int64{-1, 0, 1023, 1024, 1536, 256 << 20, 1 << 30, 5 << 40} {
		got = append(got, sizeText(n))
	}
	if s := strings.Join(got, ", "); s != "unlimited, 0 B, 1023 B, 1 KiB, 1.5 KiB, 256 MiB, 1"+
		" GiB, 5120 GiB" {
		t.Errorf("formatted sizes = %s, want unlimited and 0 B to 5120 GiB", s)
	}
}
