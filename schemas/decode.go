package schemas

import (
	"bytes"
	"math"
	"strconv"
)

// jsonReader reads a sample or a job request as encoding/json would, five to ten
// times as fast: thousands of nodes send little but the one, and reading the other was
// a third of an answer. It takes what is written plainly (known keys, texts without
// escapes, in any order) and leaves everything else to encoding/json, and with it all
// that there is to say of an error.
type jsonReader struct {
	data []byte
	at   int
	ok   bool
}

// readSample returns a sample, or nil if encoding/json is to look at it.
func readSample(data []byte) *Sample {
	r := jsonReader{data: data, ok: true}
	s := r.sample()
	if r.next(); !r.ok || r.at != len(data) {
		return nil
	}
	return s
}

// readSamples does the same with an array of samples.
func readSamples(data []byte) (all []*Sample) {
	r := jsonReader{data: data, ok: true}
	r.take('[')
	for first := true; r.ok && r.next() != ']'; first = false {
		if !first {
			r.take(',')
		}
		all = append(all, r.sample())
	}
	r.take(']')
	if r.next(); !r.ok || r.at != len(data) {
		return nil
	}
	return all
}

// sample reads one sample.
func (r *jsonReader) sample() *Sample {
	// The figures lie behind the sample, so that all need one allocation.
	s := &struct {
		Sample
		figures [sampleFigures]float64
	}{}
	used := 0
	figure := func(to **float64) {
		if used == len(s.figures) { // some key came twice
			r.ok = false
			return
		}
		v := &s.figures[used]
		used++
		*v, *to = r.float(), v
	}
	r.take('{')
	for first := true; r.ok && r.next() != '}'; first = false {
		if !first {
			r.take(',')
		}
		key := r.key()
		switch string(key) {
		case "event_id":
			s.EventID = string(r.text())
		case "at":
			r.ok = r.ok && s.At.UnmarshalText(r.text()) == nil
		case "node":
			s.Node = within(s.EventID, r.text())
		case "boot_id":
			s.BootID = within(s.EventID, r.text())
		case "number":
			s.Number = r.integer(math.MaxUint64)
		case "interval_seconds":
			s.IntervalSeconds = r.float()
		case "cores":
			s.Cores = uint32(r.integer(math.MaxUint32))
		case "cpu_model":
			s.CPUModel = string(r.text())
		default:
			to := s.figure(key)
			if to == nil {
				r.ok = false
				return nil
			}
			figure(to)
		}
	}
	r.take('}')
	return &s.Sample
}

// sampleFigures is how many figures of a sample may be absent.
const sampleFigures = 16

// figure is where a figure that may be absent belongs; nil for an unknown key.
func (s *Sample) figure(key []byte) **float64 {
	switch string(key) {
	case "cpu_ratio":
		return &s.CPURatio
	case "io_wait_ratio":
		return &s.IOWaitRatio
	case "cpu_pressure_ratio":
		return &s.CPUPressureRatio
	case "io_pressure_ratio":
		return &s.IOPressureRatio
	case "io_full_pressure_ratio":
		return &s.IOFullPressureRatio
	case "memory_pressure_ratio":
		return &s.MemoryPressureRatio
	case "memory_full_pressure_ratio":
		return &s.MemoryFullPressureRatio
	case "load_average":
		return &s.LoadAverage
	case "memory_total_bytes":
		return &s.MemoryTotalBytes
	case "memory_available_bytes":
		return &s.MemoryAvailableBytes
	case "disk_read_bytes_per_second":
		return &s.DiskReadBytesPerSecond
	case "disk_written_bytes_per_second":
		return &s.DiskWrittenBytesPerSecond
	case "disk_busy_ratio":
		return &s.DiskBusyRatio
	case "network_received_bytes_per_second":
		return &s.NetworkReceivedBytesPerSecond
	case "network_transmitted_bytes_per_second":
		return &s.NetworkTransmittedBytesPerSecond
	case "speed_operations_per_second":
		return &s.SpeedOperationsPerSecond
	}
	return nil
}

// within is a text as a part of the identity, which most often holds it, else a copy.
func within(id string, text []byte) string {
	from := 0
	for from+len(text) <= len(id) {
		if id[from:from+len(text)] == string(text) {
			return id[from : from+len(text)]
		}
		for from < len(id) && id[from] != '/' {
			from++
		}
		from++
	}
	return string(text)
}

// next is the next byte that is no space, 0 at the end.
func (r *jsonReader) next() byte {
	for r.at < len(r.data) {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) take(want byte) {
	if r.next() != want {
		r.ok = false
		return
	}
	r.at++
}

// key reads a key. Its reader knows all that there are: what is not one of them, as one
// with an escape, is not ok.
func (r *jsonReader) key() []byte {
	r.take('"')
	rest := r.data[min(r.at, len(r.data)):]
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		r.ok = false
		return nil
	}
	r.at += n + 1
	r.take(':')
	return rest[:n]
}

// text reads a string of plain ASCII without escapes.
func (r *jsonReader) text() []byte {
	r.take('"')
	for i := r.at; r.ok && i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			text := r.data[r.at:i]
			r.at = i + 1
			return text
		case c < ' ' || c == '\\' || c >= 0x80:
			r.ok = false
		}
	}
	r.ok = false
	return nil
}

// digits reads a run of them.
func (r *jsonReader) digits() []byte {
	from := r.at
	for r.at < len(r.data) && r.data[r.at]-'0' <= 9 {
		r.at++
	}
	r.ok = r.ok && r.at > from
	return r.data[from:r.at]
}

// integer reads a whole number in digits.
func (r *jsonReader) integer(most uint64) uint64 {
	r.next()
	digits := r.digits()
	if len(digits) > 1 && digits[0] == '0' || r.continues() {
		r.ok = false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	r.ok = r.ok && err == nil && n <= most
	return n
}

// continues says that a number goes on with what is no digit.
func (r *jsonReader) continues() bool {
	return r.at < len(r.data) && (r.data[r.at] == '.' || r.data[r.at]|0x20 == 'e')
}

// float reads a number as JSON writes it.
func (r *jsonReader) float() float64 {
	r.next()
	from := r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	whole, fraction := r.digits(), []byte(nil)
	if len(whole) > 1 && whole[0] == '0' {
		r.ok = false
	}
	if r.at < len(r.data) && r.data[r.at] == '.' {
		r.at++
		fraction = r.digits()
	}
	if r.at < len(r.data) && r.data[r.at]|0x20 == 'e' {
		r.at++
		if r.at < len(r.data) && (r.data[r.at] == '+' || r.data[r.at] == '-') {
			r.at++
		}
		r.digits()
	} else if n := len(whole) + len(fraction); r.ok && n < len(powersOfTen) {
		// Both are exact, so that their quotient is rounded once, as it should be.
		v := float64(join(fraction, join(whole, 0))) / powersOfTen[len(fraction)]
		if r.data[from] == '-' {
			v = -v
		}
		return v
	}
	v, err := strconv.ParseFloat(string(r.data[from:r.at]), 64)
	r.ok = r.ok && err == nil
	return v
}

// powersOfTen are exact, as all whole numbers of at most 15 digits are.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// join appends digits to a number.
func join(digits []byte, n uint64) uint64 {
	for _, d := range digits {
		n = 10*n + uint64(d-'0')
	}
	return n
}
