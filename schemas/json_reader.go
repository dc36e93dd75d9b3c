package schemas

import (
	"bytes"
	"math"
	"strconv"
)

// jsonReader reads samples and job requests with the result of encoding/json, five to ten times
// as fast: most messages of a large cluster are samples, and decoding a request took a third of
// the time of an answer.
//
// It accepts plain JSON only: known keys and strings without escapes, in any order. For any other
// input ok becomes false, and the caller uses encoding/json, which also reports the error.
type jsonReader struct {
	data []byte
	pos  int
	ok   bool
}

// atEnd reports whether the input was plain JSON and has been read completely.
func (r *jsonReader) atEnd() bool {
	r.next()
	return r.ok && r.pos == len(r.data)
}

// next returns the next byte that is not white space, or 0 at the end.
func (r *jsonReader) next() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// expect consumes the given byte.
func (r *jsonReader) expect(want byte) {
	if r.next() != want {
		r.ok = false
		return
	}
	r.pos++
}

// key reads a key and its colon. It does not check for escapes, because a key with an escape
// equals none of the known keys.
func (r *jsonReader) key() []byte {
	r.expect('"')
	rest := r.data[min(r.pos, len(r.data)):]
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		r.ok = false
		return nil
	}
	r.pos += n + 1
	r.expect(':')
	return rest[:n]
}

// text reads a string of ASCII characters without escapes.
func (r *jsonReader) text() []byte {
	r.expect('"')
	for i := r.pos; r.ok && i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			text := r.data[r.pos:i]
			r.pos = i + 1
			return text
		case c < ' ' || c == '\\' || c >= 0x80:
			r.ok = false
		}
	}
	r.ok = false
	return nil
}

// digits reads one or more decimal digits.
func (r *jsonReader) digits() []byte {
	from := r.pos
	for r.pos < len(r.data) && r.data[r.pos]-'0' <= 9 {
		r.pos++
	}
	r.ok = r.ok && r.pos > from
	return r.data[from:r.pos]
}

// integer reads a whole number from 0 to limit.
func (r *jsonReader) integer(limit uint64) uint64 {
	r.next()
	digits := r.digits()
	if len(digits) > 1 && digits[0] == '0' || r.hasFraction() {
		r.ok = false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	r.ok = r.ok && err == nil && n <= limit
	return n
}

// hasFraction reports whether the number continues with a fraction or an exponent.
func (r *jsonReader) hasFraction() bool {
	return r.pos < len(r.data) && (r.data[r.pos] == '.' || r.data[r.pos]|0x20 == 'e')
}

// float reads a JSON number.
func (r *jsonReader) float() float64 {
	r.next()
	from := r.pos
	if r.pos < len(r.data) && r.data[r.pos] == '-' {
		r.pos++
	}
	whole, fraction := r.digits(), []byte(nil)
	if len(whole) > 1 && whole[0] == '0' {
		r.ok = false
	}

	if r.pos < len(r.data) && r.data[r.pos] == '.' {
		r.pos++
		fraction = r.digits()
	}
	if r.pos < len(r.data) && r.data[r.pos]|0x20 == 'e' {
		r.pos++
		if r.pos < len(r.data) && (r.data[r.pos] == '+' || r.data[r.pos] == '-') {
			r.pos++
		}
		r.digits()
	} else if n := len(whole) + len(fraction); r.ok && n < len(powersOfTen) {
		// Numerator and denominator are exact, so the quotient is rounded only once.
		v := float64(appendDigits(appendDigits(0, whole), fraction)) / powersOfTen[len(fraction)]
		if r.data[from] == '-' {
			v = -v
		}
		return v
	}

	v, err := strconv.ParseFloat(string(r.data[from:r.pos]), 64)
	r.ok = r.ok && err == nil
	return v
}

// powersOfTen are exact, as is every whole number of at most 15 digits.
var powersOfTen = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
}

// appendDigits returns n followed by decimal digits.
func appendDigits(n uint64, digits []byte) uint64 {
	for _, d := range digits {
		n = 10*n + uint64(d-'0')
	}
	return n
}

// boolean reads true or false.
func (r *jsonReader) boolean() bool {
	r.next()
	rest := r.data[r.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		r.pos += len("true")
		return true
	case bytes.HasPrefix(rest, []byte("false")):
		r.pos += len("false")
	default:
		r.ok = false
	}
	return false
}

// count reads a whole number as an int.
func (r *jsonReader) count() int { return int(r.integer(math.MaxInt)) }

// object reads an object; readField reads the value of each key.
func (r *jsonReader) object(readField func(key []byte)) {
	r.expect('{')
	for first := true; r.ok && r.next() != '}'; first = false {
		if !first {
			r.expect(',')
		}
		key := r.text()
		if r.expect(':'); r.ok {
			readField(key)
		}
	}
	r.expect('}')
}

// list reads an array; readElement reads each element.
func (r *jsonReader) list(readElement func()) {
	r.expect('[')
	for first := true; r.ok && r.next() != ']'; first = false {
		if !first {
			r.expect(',')
		}
		readElement()
	}
	r.expect(']')
}
