package schemas

import "math"

// readSample decodes a sample. It returns nil if encoding/json has to decode it.
func readSample(data []byte) *Sample {
	r := jsonReader{data: data, ok: true}
	s := r.sample()
	if !r.atEnd() {
		return nil
	}
	return s
}

// readSamples decodes an array of samples. It returns nil if encoding/json has to decode it.
func readSamples(data []byte) (samples []*Sample) {
	r := jsonReader{data: data, ok: true}
	r.list(func() { samples = append(samples, r.sample()) })
	if !r.atEnd() {
		return nil
	}
	return samples
}

// optionalSampleFields is the number of fields of a sample that may be absent.
const optionalSampleFields = 16

// sample reads one sample.
func (r *jsonReader) sample() *Sample {
	// One allocation holds the sample and the values that its pointers refer to.
	s := &struct {
		Sample
		values [optionalSampleFields]float64
	}{}
	used := 0
	readOptional := func(field **float64) {
		if used == len(s.values) { // a key is repeated
			r.ok = false
			return
		}
		v := &s.values[used]
		used++
		*v, *field = r.float(), v
	}

	r.expect('{')
	for first := true; r.ok && r.next() != '}'; first = false {
		if !first {
			r.expect(',')
		}
		key := r.key()
		switch string(key) {
		case "event_id":
			s.EventID = string(r.text())
		case "at":
			r.ok = r.ok && s.At.UnmarshalText(r.text()) == nil
		case "node":
			s.Node = sharedPart(s.EventID, r.text())
		case "boot_id":
			s.BootID = sharedPart(s.EventID, r.text())
		case "number":
			s.Number = r.integer(math.MaxUint64)
		case "interval_seconds":
			s.IntervalSeconds = r.float()
		case "cores":
			s.Cores = uint32(r.integer(math.MaxUint32))
		case "cpu_model":
			s.CPUModel = string(r.text())
		default:
			field := s.optionalField(key)
			if field == nil {
				r.ok = false
				return nil
			}
			readOptional(field)
		}
	}
	r.expect('}')
	return &s.Sample
}

// optionalField returns the optional field with a JSON key, or nil for an unknown key.
func (s *Sample) optionalField(key []byte) **float64 {
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

// sharedPart returns text as a string. Node and boot ID are usually parts of the event ID, which
// are separated by slashes; then the result shares the memory of id.
func sharedPart(id string, text []byte) string {
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
