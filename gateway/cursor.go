package gateway

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"courier/schemas"
)

// lastEventID is the header with the ID of the last event that a client received.
const lastEventID = "Last-Event-ID"

// position is a position in a stream: everything up to it was processed.
type position struct {
	sequence uint64 // sequence of a message
	index    uint32 // index of its last processed event, from 0, or wholeMessage
}

// wholeMessage is the index of a completely processed message.
const wholeMessage = math.MaxUint32

// endOf returns the position after a whole message.
func endOf(sequence uint64) position { return position{sequence, wholeMessage} }

// next returns the position after the next event of a stream, which is in the message with the
// given sequence. batched reports whether a message may contain several events.
func (p position) next(sequence uint64, batched bool) position {
	switch {
	case !batched:
		return endOf(sequence)
	case p.sequence == sequence:
		return position{sequence, p.index + 1}
	}
	return position{sequence: sequence}
}

// resumeSequence returns the first sequence that may contain unprocessed events.
func (p position) resumeSequence() uint64 {
	if p.index == wholeMessage {
		return p.sequence + 1
	}
	return max(1, p.sequence)
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.sequence, o.sequence), cmp.Compare(p.index, o.index))
}

// unknownPosition is the position in a stream that a client's event ID does not contain.
var unknownPosition = position{sequence: math.MaxUint64}

// cursor holds a position in the stream of each feed, in their order. Its text form, such as
// "node=34.0,job=12", is the ID of a live event.
type cursor []position

// advance moves each position forward to the position of another cursor.
func (c cursor) advance(to cursor) {
	for i := range c {
		if c[i].compare(to[i]) < 0 {
			c[i] = to[i]
		}
	}
}

func (c cursor) text(feeds []feed) string {
	parts := make([]string, len(c))
	for i, p := range c {
		parts[i] = fmt.Sprintf("%s=%d", feeds[i].name, p.sequence)
		if p.index != wholeMessage {
			parts[i] += fmt.Sprintf(".%d", p.index)
		}
	}
	return strings.Join(parts, ",")
}

// parseCursor parses the text form of a cursor. The position in a stream without an entry is
// unknownPosition. Entries of unknown streams are ignored, because another version may follow them.
func parseCursor(text string, feeds []feed) (cursor, error) {
	c := make(cursor, len(feeds))
	for i := range c {
		c[i] = unknownPosition
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(part, "=")
		p, err := parsePosition(value)
		if err != nil || !found {
			return nil, schemas.Invalid(lastEventID,
				"want the id of an event, such as job=12,node=34.0")
		}
		for i := range feeds {
			if feeds[i].name == name {
				c[i] = p
			}
		}
	}
	return c, nil
}

func parsePosition(text string) (position, error) {
	sequence, index, partial := strings.Cut(text, ".")
	n, err := strconv.ParseUint(sequence, 10, 63)
	if err != nil || !partial {
		return endOf(n), err
	}
	k, err := strconv.ParseUint(index, 10, 31)
	return position{n, uint32(k)}, err
}
