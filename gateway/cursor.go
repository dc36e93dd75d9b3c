package gateway

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"courier/schemas"
)

// position is the place up to which a stream was handled.
type position struct {
	sequence uint64 // of a message
	index    uint32 // of its last event that was handled, from 0; wholeMessage: all
}

// wholeMessage is the index after which nothing of a message is left.
const wholeMessage = math.MaxUint32

// endOf is the position after a whole message.
func endOf(sequence uint64) position { return position{sequence, wholeMessage} }

// next returns the position after the next event of a stream, which is in the message with
// this sequence. Only a message with samples holds several events.
func (p position) next(sequence uint64, several bool) position {
	switch {
	case !several:
		return endOf(sequence)
	case p.sequence == sequence:
		return position{sequence, p.index + 1}
	}
	return position{sequence: sequence}
}

// unhandled is the first sequence of which something may not be handled.
func (p position) unhandled() uint64 {
	if p.index == wholeMessage {
		return p.sequence + 1
	}
	return max(1, p.sequence)
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.sequence, o.sequence), cmp.Compare(p.index, o.index))
}

// unknownPosition marks a stream of which a client has not said where it is.
var unknownPosition = position{sequence: math.MaxUint64}

// cursor is a position in each stream of the feeds, in their order: everything up to it
// was handled. As text, such as "node=34.0,job=12", it is the ID of an event.
type cursor []position

// advance moves each position forward to another cursor's.
func (c cursor) advance(to cursor) {
	for i := range c {
		if c[i].compare(to[i]) < 0 {
			c[i] = to[i]
		}
	}
}

// appendTo appends the cursor as text.
func (c cursor) appendTo(b []byte, feeds []feed) []byte {
	for i, p := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, feeds[i].name...), '=')
		b = strconv.AppendUint(b, p.sequence, 10)
		if p.index != wholeMessage {
			b = strconv.AppendUint(append(b, '.'), uint64(p.index), 10)
		}
	}
	return b
}

// parseCursor reads a cursor. Streams that it does not name are unknown; streams that the
// gateway does not follow are ignored, because another version may follow them.
func parseCursor(text string, feeds []feed) (cursor, error) {
	c := make(cursor, len(feeds))
	for i := range c {
		c[i] = unknownPosition
	}
	for part := range strings.SplitSeq(text, ",") {
		name, place, found := strings.Cut(part, "=")
		p, err := parsePosition(place)
		if err != nil || !found {
			return nil, schemas.Invalid(lastEventID, "want the id of an event, such as job=12,node=34.0")
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
