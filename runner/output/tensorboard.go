package output

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// TensorBoard reads epochs from the event files of TensorBoard. An epoch ends with each new step of
// one metric on held-out data, such as "Accuracy/val". The times of events are those that the job
// recorded.
type TensorBoard struct {
	fileMetrics
	files      map[string]*eventFile
	clock      string // metric whose steps are epochs, with its directory; empty: none was read
	current    *boardEpoch
	steps      uint32   // complete steps of clock
	loss       *float64 // last loss of the training
	stepLosses map[int64]*float64
	complete   []EpochReport
}

// boardEpoch is the last step of the metric that counts epochs.
type boardEpoch struct {
	*block
	step int64
	at   time.Time
	loss *float64 // of the training
}

// maxStepLosses bounds the losses that are kept for the next step.
const maxStepLosses = 1024

// maxEventFiles bounds the event files of one log.
const maxEventFiles = 64

// NewTensorBoard returns a parser that has read nothing.
func NewTensorBoard() *TensorBoard {
	return &TensorBoard{
		fileMetrics: newFileMetrics(),
		files:       map[string]*eventFile{},
		stepLosses:  map[int64]*float64{},
	}
}

// Write takes the next bytes of an event file. The name of its directory distinguishes data sets, as
// Keras writes them: "train" and "validation".
func (b *TensorBoard) Write(path string, data []byte) {
	f := b.files[path]
	if f == nil {
		if len(b.files) >= maxEventFiles {
			return
		}
		f = &eventFile{directory: strings.ToLower(filepath.Base(filepath.Dir(path)))}
		b.files[path] = f
	}
	f.add(data, func(s scalar) { b.scalar(f, s) })
}

// Take returns the epochs since the last call. With isIdle, the last step is complete, because its
// other metrics were written with it.
func (b *TensorBoard) Take(isIdle bool) []EpochReport {
	if isIdle {
		b.end()
	}
	reports := b.complete
	b.complete = nil
	return reports
}

// end completes the current step.
func (b *TensorBoard) end() {
	e := b.current
	if e == nil {
		return
	}
	b.current = nil
	if v, ok := b.stepLosses[e.step]; ok && strings.Contains(b.clock, "/epoch_") {
		e.loss = v // Keras writes it in another file
	}
	b.steps++
	r := b.report(EpochReport{Epoch: b.steps, At: e.at, ReportedAt: e.at}, e.block)
	r.Loss = e.loss
	b.complete = append(b.complete, r)
}

// scalar takes one value.
func (b *TensorBoard) scalar(f *eventFile, s scalar) {
	name := strings.ToLower(s.tag)
	n := nameOf([]byte(strings.TrimPrefix(name, "epoch_")), nil)
	if n.scope == scopeNone {
		n.scope = nameOf([]byte(f.directory), nil).scope
	}
	if n.kind == kindNone || n.kind == kindTime || strings.Contains(name, "_vs_iterations") {
		return
	}
	if n.scope < scopeTest && n.kind == kindLoss {
		b.loss = validLoss(s.value)
		if len(b.stepLosses) >= maxStepLosses {
			clear(b.stepLosses)
		}
		b.stepLosses[s.step] = b.loss
	}
	if n.scope < scopeTest {
		return
	}

	clock := f.directory + "/" + name
	if b.clock == "" {
		b.clock = clock
	}
	if clock == b.clock && b.current != nil && s.step != b.current.step {
		b.end()
	}
	if b.current == nil {
		if clock != b.clock {
			return
		}
		b.current = &boardEpoch{block: newBlock(), step: s.step, at: s.at, loss: b.loss}
	}
	b.addNamed(b.current.block, n, name, s.value)
}

// scalar is a value of an event file.
type scalar struct {
	tag   string
	step  int64
	value float64
	at    time.Time
}

// eventFile splits an event file into records. A record is its length (8 bytes, little endian), a
// checksum of it (4), the data and a checksum of them (4), as TensorFlow's record_writer.cc
// documents. Checksums are not verified: a record of an open file may be incomplete.
type eventFile struct {
	directory string
	partial   []byte
	skip      uint64 // bytes of a large record to ignore
}

// maxRecordBytes bounds a record. Larger ones are images or graphs.
const maxRecordBytes = 1 << 20

func (f *eventFile) add(data []byte, handle func(scalar)) {
	f.partial = append(f.partial, data...)
	for {
		if n := min(f.skip, uint64(len(f.partial))); n > 0 {
			f.partial, f.skip = f.partial[n:], f.skip-n
		}
		if len(f.partial) < 12 {
			return
		}
		length := binary.LittleEndian.Uint64(f.partial)
		if length > maxRecordBytes {
			f.skip = length
			if length < math.MaxUint64-16 {
				f.skip += 16
			}
			continue
		}
		end := int(length) + 16
		if len(f.partial) < end {
			return
		}
		readEvent(f.partial[12:end-4], handle)
		f.partial = append([]byte(nil), f.partial[end:]...)
	}
}

// readEvent reads the scalars of a tensorflow.Event: wall_time (1), step (2) and summary (5), whose
// values (1) have a tag (1) and a simple_value (2) or a tensor (8).
func readEvent(data []byte, handle func(scalar)) {
	var s scalar
	var summaries [][]byte
	eachField(data, func(id protowire.Number, number uint64, text []byte) {
		switch id {
		case 1:
			seconds, fraction := math.Modf(math.Float64frombits(number))
			s.at = time.Unix(int64(seconds), int64(fraction*1e9))
		case 2:
			s.step = int64(number)
		case 5:
			summaries = append(summaries, text)
		}
	})
	for _, summary := range summaries {
		eachField(summary, func(id protowire.Number, _ uint64, value []byte) {
			if id == 1 {
				readValue(value, s, handle)
			}
		})
	}
}

// readValue reads a tensorflow.Summary.Value.
func readValue(data []byte, s scalar, handle func(scalar)) {
	isScalar := false
	eachField(data, func(id protowire.Number, number uint64, text []byte) {
		switch id {
		case 1:
			s.tag = string(text)
		case 2:
			s.value, isScalar = singleOf(number), true
		case 8:
			if value, ok := tensorValue(text); ok {
				s.value, isScalar = value, true
			}
		}
	})
	if isScalar && s.tag != "" {
		handle(s)
	}
}

// tensorValue reads the only number of a tensorflow.TensorProto of floats (dtype 1): tensor_content
// (4) or float_val (5).
func tensorValue(data []byte) (value float64, ok bool) {
	isFloat := false
	eachField(data, func(id protowire.Number, number uint64, text []byte) {
		switch {
		case id == 1:
			isFloat = number == 1
		case (id == 4 || id == 5) && len(text) == 4:
			value, ok = singleOf(uint64(binary.LittleEndian.Uint32(text))), true
		case id == 5 && text == nil:
			value, ok = singleOf(number), true
		}
	})
	return value, ok && isFloat
}

func singleOf(bits uint64) float64 { return float64(math.Float32frombits(uint32(bits))) }

// eachField calls handle for the fields of a message of protocol buffers, up to the first error, with
// their value as a number or as bytes.
func eachField(data []byte, handle func(id protowire.Number, number uint64, text []byte)) {
	for len(data) > 0 {
		id, kind, begin := protowire.ConsumeTag(data)
		if begin < 0 {
			return
		}
		length := protowire.ConsumeFieldValue(id, kind, data[begin:])
		if length < 0 {
			return
		}
		value := data[begin : begin+length]
		data = data[begin+length:]
		switch kind {
		case protowire.VarintType:
			number, _ := protowire.ConsumeVarint(value)
			handle(id, number, nil)
		case protowire.Fixed64Type:
			handle(id, binary.LittleEndian.Uint64(value), nil)
		case protowire.Fixed32Type:
			handle(id, uint64(binary.LittleEndian.Uint32(value)), nil)
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			handle(id, 0, text)
		}
	}
}
