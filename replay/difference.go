package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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

	d := &FieldDifference{EventID: r.Event.ID(), Sequence: r.Sequence}
	var was, is any
	if err := json.Unmarshal(x, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(y, &is); err != nil {
		return nil, err
	}
	d.find("", was, is)
	return d, nil
}

// find sets the first field, by name, in which two documents differ.
func (d *FieldDifference) find(path string, a, b any) bool {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			return d.findInObjects(path, x, y)
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				if d.find(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]) {
					return true
				}
			}
			return false
		}
	}
	was, _ := json.Marshal(a) // Both were just decoded from JSON.
	is, _ := json.Marshal(b)
	if bytes.Equal(was, is) {
		return false
	}
	d.Field, d.Recorded, d.Replayed = path[min(1, len(path)):], was, is
	return true
}

func (d *FieldDifference) findInObjects(path string, a, b map[string]any) bool {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if d.find(path+"."+name, a[name], b[name]) {
			return true
		}
	}
	return false
}
