package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"courier/bus"
	"courier/schemas"
)

func TestLetterText(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	whole := func(data string) *bus.Letter {
		l := &bus.Letter{
			Dead: schemas.Dead{
				Stream:         "NODE",
				OriginSequence: 9,
				OriginSubject:  "node.a\x1b[2J.sample",
				Consumer:       "store-NODE",
				Reason:         "invalid:\nnot JSON",
				Data:           []byte(data),
				OriginBytes:    len(data),
			},
			StoredAt: at,
			Digest:   "d16e57",
		}
		l.Sequence, l.At = 4, at
		return l
	}
	head := "letter   4, stored 2026-11-21 08:00:00Z\norigin   NODE 9\nsubject " +
		" node.a\uFFFD[2J.sample\nread by  store-NODE at 2026-11-21 08:00:00Z\nreason  " +
		" invalid:\uFFFDnot JSON\n"
	cut := whole("abc")
	cut.OriginBytes = 200_000
	again := whole("{broken\n")
	again.Replayed = &schemas.Replayed{
		Stamp:            schemas.Stamp{At: at},
		Stream:           "NODE",
		ReplayedSequence: 15,
		ReplayedID:       "a/boot/1",
	}
	for _, c := range []struct {
		name string
		l    *bus.Letter
		want string
	}{
		{"text", whole("{broken"), "state    dead\nbytes    7, text, sha256 d16e57\n\n{broken\n"},
		{
			"lines of another system",
			whole("a\r\nb"),
			"state    dead\nbytes    4, text, sha256 d16e57\n\na\nb\n",
		},
		{
			"not text",
			whole("a\x00\xff"),
			"state    dead\nbytes    3, in hex, sha256 d16e57\n\n00000000  61 00 ff             " +
				"                             |a..|\n",
		},
		{"empty", whole(""), "state    dead\nbytes    0, text, sha256 d16e57\n"},
		{"cut", cut, "state    dead\nbytes    the first 3 of 200000, text, sha256 d16e57\n\nabc\n"},
		{
			"replayed",
			again,
			"state    replayed 2026-11-21 08:00:00Z as NODE 15, event a/boot/1\nbytes    8," +
				" text, sha256 d16e57\n\n{broken\n",
		},
	} {
		var out bytes.Buffer
		if err := LetterText(&out, c.l); err != nil || out.String() != head+c.want {
			t.Errorf("%s: LetterText wrote\n%q, %v\nwant\n%q", c.name, out.String(), err,
				head+c.want)
		}
	}
}

// Printed text has no control characters, and differs from the message in carriage returns only.
func FuzzPlainText(f *testing.F) {
	for _, seed := range []string{
		"", "{\"a\":1}\r\n", "\x1b[2J", "a\rb", "\u202eabc", "\xff", "\u009b2J", "日本\t語",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, ok := plainText(data)
		if !ok {
			return
		}
		if strings.ReplaceAll(string(data), "\r\n", "\n") != text {
			t.Errorf("plainText(%q) = %q, want the text without carriage returns", data, text)
		}
		if i := strings.IndexFunc(text, func(c rune) bool {
			return unicode.IsControl(c) && c != '\n' && c != '\t'
		}); i >= 0 {
			t.Errorf("plainText(%q) has a control character at %d", data, i)
		}
	})
}

func TestLetterReplay_Text(t *testing.T) {
	for _, c := range []struct {
		fate bus.Fate
		want string
	}{
		{bus.FateReplayed, "4  NODE 9 node.a.sample: replayed as NODE 15"},
		{
			bus.FateAlreadyStored,
			"4  NODE 9 node.a.sample: exists already as NODE 15; marked as replayed",
		},
		{bus.FateAlreadyReplayed, "4  NODE 9 node.a.sample: was replayed before as NODE 15"},
		{bus.FateReplayable, "4  NODE 9 node.a.sample: can be replayed as event a/boot/1"},
		{bus.FateRefused, "4  NODE 9 node.a.sample: refused: why"},
		{FateOpen, "4  NODE 9 node.a.sample: not completed, replay it again: why"},
	} {
		r := LetterReplay{4, "NODE", 9, "node.a.sample", c.fate, 15, "a/boot/1", "why"}
		if got := r.Text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.fate, got, c.want)
		}
	}
}
