package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"courier/bus"
	"courier/schemas"
)

type deadCommand struct {
	List   deadList   `cmd:"" help:"List dead letters, the newest first."`
	Show   deadShow   `cmd:"" help:"Show one dead letter with its original bytes."`
	Replay deadReplay `cmd:"" help:"Publish the bytes of dead letters again, once they can be understood."`
}

// deadTimeout bounds the reading of the stream DEAD.
const deadTimeout = time.Minute

// letterFlags say which dead letters are meant.
type letterFlags struct {
	Stream string        `help:"Only those of this stream, such as NODE." placeholder:"STREAM"`
	Since  time.Duration `help:"Only those of the last, such as 24h." placeholder:"TIME"`
	Reason string        `help:"Only those with these words in their reason." placeholder:"WORDS"`
}

// query checks the flags.
func (f *letterFlags) query(now time.Time) (bus.LetterQuery, error) {
	q := bus.LetterQuery{Stream: strings.ToUpper(f.Stream), Reason: f.Reason}
	if f.Since < 0 {
		return q, schemas.Invalid("since", "%s is not a time ago; want one such as 24h", f.Since)
	}
	if f.Since > 0 {
		q.Since = now.Add(-f.Since)
	}
	var names []string
	for _, s := range schemas.Streams() {
		if names = append(names, s.Name); q.Stream == s.Name {
			return q, nil
		}
	}
	if q.Stream != "" {
		return q, schemas.Invalid("stream", "%q is not one of %v", f.Stream, names)
	}
	return q, nil
}

type deadList struct {
	natsFlags
	outputFlags
	letterFlags
	Limit int `help:"Most letters to list." default:"20"`
}

// letterReport is a dead letter as JSON; data is left out of lists.
type letterReport struct {
	Letter         uint64            `json:"letter_sequence"` // in the stream DEAD: what show and replay ask for
	EventID        string            `json:"event_id"`
	At             time.Time         `json:"at"`
	Stream         string            `json:"stream"`
	OriginSequence uint64            `json:"origin_sequence"`
	OriginSubject  string            `json:"origin_subject"`
	OriginBytes    int               `json:"origin_bytes,omitempty"` // absent: not told
	Consumer       string            `json:"consumer"`
	Reason         string            `json:"reason"`
	Copies         int               `json:"copies,omitempty"`
	DataDigest     string            `json:"data_digest"`
	Data           []byte            `json:"data,omitempty"`
	Replayed       *schemas.Replayed `json:"replayed,omitempty"`
}

func reportLetter(l *bus.Letter) letterReport {
	return letterReport{l.Sequence, l.EventID, l.At, l.Stream, l.OriginSequence, l.OriginSubject, l.OriginBytes, l.Consumer, l.Reason, l.Copies, l.Digest, l.Data, l.Replayed}
}

// letterList is what courier dead list -o json prints.
type letterList struct {
	Letters []letterReport `json:"letters"`
	Total   int            `json:"total"` // without the limit
}

// Run reads the stream DEAD to its end.
func (c *deadList) Run(w *world) error {
	q, err := c.query(time.Now())
	if err != nil {
		return err
	}
	if q.Limit = c.Limit; q.Limit < 1 {
		return schemas.Invalid("limit", "%d is not 1 or more", c.Limit)
	}
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, deadTimeout)
	defer cancel()
	letters, total, err := b.Letters(ctx, q)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		list := letterList{Letters: []letterReport{}, Total: total}
		for i := range letters {
			list.Letters = append(list.Letters, reportLetter(&letters[i]))
		}
		return indented(w.stdout, list)
	}
	return printLetters(w.stdout, letters, total)
}

// printLetters writes a line for each letter, and what to do with them.
func printLetters(out io.Writer, letters []bus.Letter, total int) error {
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
		fmt.Fprintf(t, "%d\t%s\t%s %d\t%s\t%s\t%s\t%d\t%s\t%s\n", l.Sequence, second(l.At), tame(l.Stream), l.OriginSequence, cut(tame(l.OriginSubject), subjectLetters, true), tame(consumer), size, l.Copies,
			letterState(l), cut(tame(l.Reason), whyLetters, false))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := total - len(letters); more > 0 {
		fmt.Fprintf(out, "%d older: --limit %d shows them, too.\n", more, total)
	}
	_, err := fmt.Fprintln(out, "\ncourier dead show LETTER shows one; courier dead replay LETTER publishes it again, once it can be understood.")
	return err
}

// subjectLetters is how much of a subject a line of the list shows.
const subjectLetters = 48

func letterState(l *bus.Letter) string {
	if l.Replayed == nil {
		return "dead"
	}
	return fmt.Sprintf("replayed as %d", l.Replayed.ReplayedSequence)
}
