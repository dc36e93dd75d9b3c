package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"courier/bus"
)

type deadShow struct {
	natsFlags
	outputFlags
	Letter uint64 `arg:"" help:"Of the letter, as courier dead list shows it."`
	Raw    bool   `help:"Write the original bytes and nothing else, as they are."`
}

// Run reads one letter.
func (c *deadShow) Run(w *world) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, deadTimeout)
	defer cancel()
	l, err := b.Letter(ctx, c.Letter)
	if err != nil {
		return err
	}
	switch {
	case c.Raw:
		_, err = w.stdout.Write(l.Data)
		return err
	case c.Output == "json":
		r := reportLetter(l)
		r.Copies = 0 // not counted
		return indented(w.stdout, r)
	}
	return printLetter(w.stdout, l)
}

// printLetter tells all of a letter, and then its bytes: text where it is that.
func printLetter(out io.Writer, l *bus.Letter) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, values ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, tame(fmt.Sprintf(format, values...)))
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
		line("state", "replayed %s as %s %d, event %s", second(m.At), m.Stream, m.ReplayedSequence, m.ReplayedID)
	}
	text, isText := plainText(l.Data)
	size := fmt.Sprintf("%d", len(l.Data))
	switch {
	case l.Truncated() && l.OriginBytes > 0:
		size = fmt.Sprintf("the first %d of %d", len(l.Data), l.OriginBytes)
	case l.Truncated():
		size = fmt.Sprintf("the first %d", len(l.Data))
	}
	line("bytes", "%s, %s, sha256 %s", size, map[bool]string{true: "text", false: "in hex"}[isText], l.Digest)
	if err := t.Flush(); err != nil || len(l.Data) == 0 {
		return err
	}
	if !isText {
		text = hex.Dump(l.Data)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.TrimSuffix(text, "\n"))
	return err
}

// plainText returns bytes as text that a terminal shows and does not obey, with
// plain line ends; ok is false where they are anything else.
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

// tame makes foreign words safe for a line on a terminal.
func tame(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '\uFFFD'
		}
		return c
	}, s)
}
