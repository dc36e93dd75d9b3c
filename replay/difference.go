package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"courier/schemas"
)

// FieldDifference is the first field in which a replayed event differs.
type FieldDifference struct {
	EventID  string          `json:"event_id"`
	Sequence uint64          `json:"sequence"` // in its stream
	Field    string          `json:"field"`
	Recorded json.RawMessage `json:"recorded"` // null: absent
	Replayed json.RawMessage `json:"replayed"`
}

// firstDifference compares two documents as JSON; nil if they are equal.
func firstDifference(r *LogRecord, recorded, again any) (*FieldDifference, error) {
	x, err := schemas.Marshal(recorded)
	if err != nil {
		return nil, err
	}
	y, err := schemas.Marshal(again)
	if err != nil || bytes.Equal(x, y) {
		return nil, err
	}

	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := errors.Join(addLeaves(was, x), addLeaves(is, y)); err != nil {
		return nil, err
	}
	fields := slices.Sorted(maps.Keys(was))
	for _, f := range append(fields, slices.Sorted(maps.Keys(is))...) {
		if !bytes.Equal(was[f], is[f]) {
			return &FieldDifference{r.Event.ID(), r.Sequence, f, was[f], is[f]}, nil
		}
	}
	return nil, nil // The documents differ in the order of their fields.
}

// addLeaves adds the numbers, texts and empty values of a JSON document by their path.
func addLeaves(leaves map[string]json.RawMessage, document []byte) error {
	var add func(path string, value any)
	add = func(path string, value any) {
		object, _ := value.(map[string]any)
		for name, x := range object {
			add(strings.TrimPrefix(path+"."+name, "."), x)
		}
		list, _ := value.([]any)
		for i, x := range list {
			add(fmt.Sprintf("%s[%d]", path, i), x)
		}
		if len(object)+len(list) == 0 {
			leaves[path], _ = json.Marshal(value) // It was just decoded from JSON.
		}
	}
	var decoded any
	err := json.Unmarshal(document, &decoded)
	add("", decoded)
	return err
}
