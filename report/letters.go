package report

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"courier/bus"
	"courier/report/shorten"
	"courier/schemas"
)

// DeadLetter is a dead letter as JSON; lists have no data.
type DeadLetter struct {
	Letter         uint64            `json:"letter_sequence"` // sequence in the stream DEAD
	EventID        string            `json:"event_id"`
	At             time.Time         `json:"at"`
	Stream         string            `json:"stream"`
	OriginSequence uint64            `json:"origin_sequence"`
	OriginSubject  string            `json:"origin_subject"`
	OriginBytes    int               `json:"origin_bytes,omitempty"` // absent: unknown
	Consumer       string            `json:"consumer"`
	Reason         string            `json:"reason"`
	Copies         int               `json:"copies,omitempty"`
	DataDigest     string            `json:"data_digest"`
	Data           []byte            `json:"data,omitempty"`
	Replayed       *schemas.Replayed `json:"replayed,omitempty"`
}

// NewLetter returns the report of a dead letter.
func NewLetter(l *bus.Letter) DeadLetter {
	return DeadLetter{
		Letter:         l.Sequence,
		EventID:        l.EventID,
		At:             l.At,
		Stream:         l.Stream,
		OriginSequence: l.OriginSequence,
		OriginSubject:  l.OriginSubject,
		OriginBytes:    l.OriginBytes,
		Consumer:       l.Consumer,
		Reason:         l.Reason,
		Copies:         l.Copies,
		DataDigest:     l.Digest,
		Data:           l.Data,
		Replayed:       l.Replayed,
	}
}

// LetterList is a list of dead letters as JSON.
type LetterList struct {
	Letters []DeadLetter `json:"letters"`
	Total   int          `json:"total"` // number without the limit
}

// Letters writes a line for each dead letter; total is their number without the limit.
func Letters(out io.Writer, letters []bus.Letter, total int) error {
	if len(letters) == 0 {
		_, err := fmt.Fprintln(out, "No dead letters.")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "letter\tat\torigin\tsubject\tread by\tbytes\tcopies\tstate\treason")
	for i := range letters {
		l := &letters[i]
		size := "-"
		if l.OriginBytes > 0 {
			size = fmt.Sprint(l.OriginBytes)
		}
		consumer := l.Consumer
		if consumer == "" {
			consumer = "-"
		}
		cells := []string{
			fmt.Sprint(l.Sequence),
			second(l.At),
			fmt.Sprintf("%s %d", printable(l.Stream), l.OriginSequence),
			shorten.Name(printable(l.OriginSubject), subjectLetters, true),
			printable(consumer),
			size,
			fmt.Sprint(l.Copies),
			letterState(l),
			shorten.Name(printable(l.Reason), maxReason, false),
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := total - len(letters); more > 0 {
		fmt.Fprintf(out, "%d older letters: add --limit %d to list them.\n", more, total)
	}
	_, err := fmt.Fprintln(out,
		"\nShow a letter with courier dead show LETTER; publish it again with"+
			" courier dead replay LETTER.")
	return err
}

// subjectLetters is the maximum length of a subject in a list.
const subjectLetters = 48

func letterState(l *bus.Letter) string {
	if l.Replayed == nil {
		return "dead"
	}
	return fmt.Sprintf("replayed as %d", l.Replayed.ReplayedSequence)
}

// LetterText writes a dead letter with its bytes, as text if they are printable.
func LetterText(out io.Writer, l *bus.Letter) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, values ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, printable(fmt.Sprintf(format, values...)))
	}
	line("letter", "%d, stored %s", l.Sequence, second(l.StoredAt))
	line("origin", "%s %d", l.Stream, l.OriginSequence)
	line("subject", "%s", l.OriginSubject)
	if l.Consumer != "" {
		line("read by", "%s at %s", l.Consumer, second(l.At))
	}
	line("reason", "%s", l.Reason)
	if m := l.Replayed; m == nil {
		line("state", "dead")
	} else {
		line("state", "replayed %s as %s %d, event %s", second(m.At), m.Stream,
			m.ReplayedSequence, m.ReplayedID)
	}
	text, isText := plainText(l.Data)
	size := fmt.Sprintf("%d", len(l.Data))
	if l.Truncated() {
		size = fmt.Sprintf("the first %d of %d", len(l.Data), l.OriginBytes)
	}
	line("bytes", "%s, %s, sha256 %s", size, map[bool]string{
		true:  "text",
		false: "in hex",
	}[isText], l.Digest)
	if err := t.Flush(); err != nil || len(l.Data) == 0 {
		return err
	}
	if !isText {
		text = hex.Dump(l.Data)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.TrimSuffix(text, "\n"))
	return err
}

// plainText returns bytes as printable text with plain line ends; ok is false for other bytes.
func plainText(data []byte) (text string, ok bool) {
	if !utf8.Valid(data) {
		return "", false
	}
	text = strings.ReplaceAll(string(data), "\r\n", "\n")
	for _, c := range text {
		if !unicode.IsPrint(c) && c != '\n' && c != '\t' {
			return "", false
		}
	}
	return text, true
}

// printable replaces characters that a terminal could interpret.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '\uFFFD'
		}
		return c
	}, s)
}

// LetterReplays are the outcomes of replaying dead letters, as JSON.
type LetterReplays struct {
	Replays []LetterReplay   `json:"replays"`
	Counts  map[bus.Fate]int `json:"counts"`
	DryRun  bool             `json:"dry_run"`
}

// LetterReplay is the outcome of replaying a dead letter.
type LetterReplay struct {
	Letter         uint64   `json:"letter_sequence"`
	Stream         string   `json:"stream"`
	OriginSequence uint64   `json:"origin_sequence"`
	OriginSubject  string   `json:"origin_subject"`
	Fate           bus.Fate `json:"fate"`               // "replayed", "there", "before", "refused", "replayable" or "open"
	Sequence       uint64   `json:"sequence,omitempty"` // of the event in stream
	EventID        string   `json:"replayed_id,omitempty"`
	Reason         string   `json:"reason,omitempty"`
}

// FateOpen is the fate of a letter whose replay failed midway; it must be replayed again.
const FateOpen bus.Fate = "open"

// Text describes the outcome in a line.
func (r *LetterReplay) Text() string {
	line := fmt.Sprintf("%d  %s %d %s: ", r.Letter, r.Stream, r.OriginSequence, r.OriginSubject)
	switch r.Fate {
	case bus.FateReplayed:
		line += fmt.Sprintf("replayed as %s %d", r.Stream, r.Sequence)
	case bus.FateAlreadyStored:
		line += fmt.Sprintf("exists already as %s %d; marked as replayed", r.Stream, r.Sequence)
	case bus.FateAlreadyReplayed:
		line += fmt.Sprintf("was replayed before as %s %d", r.Stream, r.Sequence)
	case bus.FateReplayable:
		line += fmt.Sprintf("can be replayed as event %s", r.EventID)
	case FateOpen:
		line += "not completed, replay it again: " + r.Reason
	default:
		line += "refused: " + r.Reason
	}
	return printable(line)
}

// ReplayLetters replays letters one after another, or only checks that they can be. It writes the
// outcome of each to out at once, also of one whose replay failed midway; without out the result
// lists them. After an error it returns the outcomes so far.
func ReplayLetters(
	ctx context.Context, b *bus.Bus, letters []bus.Letter, dryRun bool, out io.Writer,
) (*LetterReplays, error) {
	replay := b.Replay
	if dryRun {
		replay = b.Replayable
	}
	all := &LetterReplays{Replays: []LetterReplay{}, Counts: map[bus.Fate]int{}, DryRun: dryRun}
	for i := range letters {
		l := &letters[i]
		r, failure := replay(ctx, l)
		if failure != nil {
			r.Fate, r.Reason = FateOpen, failure.Error()
		}
		l.Data = nil
		all.Counts[r.Fate]++
		one := LetterReplay{
			Letter:         l.Sequence,
			Stream:         l.Stream,
			OriginSequence: l.OriginSequence,
			OriginSubject:  l.OriginSubject,
			Fate:           r.Fate,
			Sequence:       r.Sequence,
			EventID:        r.EventID,
			Reason:         r.Reason,
		}
		if out == nil {
			all.Replays = append(all.Replays, one)
		} else if _, err := fmt.Fprintln(out, one.Text()); err != nil {
			return all, err
		}
		if failure != nil {
			return all, failure
		}
	}
	return all, nil
}

// WriteCounts writes the number of letters with each outcome.
func (r *LetterReplays) WriteCounts(out io.Writer) error {
	var parts []string
	for _, kind := range []struct {
		fate  bus.Fate
		words string
	}{
		{bus.FateReplayed, "replayed"},
		{bus.FateAlreadyStored, "there already"},
		{bus.FateAlreadyReplayed, "replayed before"},
		{bus.FateReplayable, "can be replayed"},
		{bus.FateRefused, "refused"},
		{FateOpen, "still open"},
	} {
		if n := r.Counts[kind.fate]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.words))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no letter is left to replay"}
	}
	_, err := fmt.Fprintln(out, strings.Join(parts, ", "))
	return err
}
