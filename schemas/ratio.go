package schemas

import (
	"encoding/json"
	"fmt"
	"math"
)

// Ratio is a share from 0 to 1 that may be unknown; the zero value is unknown. In JSON it is a
// number; a field with the tag omitzero is absent if the ratio is unknown. Ratios are comparable.
type Ratio struct {
	Value float64
	Known bool
}

// RatioOf returns a known ratio, limited to the range from 0 to 1.
func RatioOf(v float64) Ratio { return Ratio{min(max(v, 0), 1), true} }

// RatioAt returns the ratio that v points to; nil is unknown.
func RatioAt(v *float64) Ratio {
	if v == nil {
		return Ratio{}
	}
	return RatioOf(*v)
}

// Tenths returns the ratio rounded to tenths.
func (r Ratio) Tenths() Ratio { return Ratio{math.Round(10*r.Value) / 10, r.Known} }

// Or returns the value, or other if it is unknown.
func (r Ratio) Or(other float64) float64 {
	if r.Known {
		return r.Value
	}
	return other
}

// MarshalJSON implements json.Marshaler; an unknown ratio is null.
func (r Ratio) MarshalJSON() ([]byte, error) {
	if !r.Known {
		return []byte("null"), nil
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON implements json.Unmarshaler; null is an unknown ratio.
func (r *Ratio) UnmarshalJSON(data []byte) error {
	var v *float64
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("decode ratio: %w", err)
	}
	if *r = (Ratio{}); v != nil {
		*r = Ratio{*v, true}
	}
	return nil
}
