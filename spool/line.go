package spool

import (
	"encoding/json"
	"fmt"

	"courier/schemas"
)

// eventLine is one line of a spool file.
type eventLine struct {
	Subject string          `json:"subject"`
	Event   json.RawMessage `json:"event"`
}

// encodeLine returns the line for an event, including the line break.
func encodeLine(e schemas.Event) ([]byte, error) {
	body, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(eventLine{Subject: e.Subject(), Event: body})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Subject(), err)
	}
	return append(line, '\n'), nil
}

func decodeLine(line []byte) (schemas.Event, error) {
	var l eventLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	return schemas.Parse(l.Subject, l.Event)
}

// maxExcerptBytes is the length of a line in a log message.
const maxExcerptBytes = 160

// excerpt returns the beginning of a line for a log message.
func excerpt(line []byte) string {
	if len(line) > maxExcerptBytes {
		return string(line[:maxExcerptBytes]) + "…"
	}
	return string(line)
}
