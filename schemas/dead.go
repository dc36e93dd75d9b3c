package schemas

// Dead is dead.<stream>: a message that could not be understood, with its bytes.
type Dead struct {
	Stamp
	Stream         string `json:"stream" ch:"stream"`                   // where it lay, upper case
	OriginSequence uint64 `json:"origin_sequence" ch:"origin_sequence"` // its place there
	OriginSubject  string `json:"origin_subject" ch:"origin_subject"`
	Consumer       string `json:"consumer" ch:"consumer"` // who could not understand it
	Reason         string `json:"reason" ch:"reason"`
	Data           []byte `json:"data" ch:"data"`                 // original bytes, base64 in JSON; cut after 128 KiB
	OriginBytes    int    `json:"origin_bytes" ch:"origin_bytes"` // of the whole original; 0: not told, as in letters of older programs
}

// MaxDeadBytes is how much of a dead letter's original is kept.
const MaxDeadBytes = 128 << 10

// Subject implements Event.
func (e *Dead) Subject() string { return DeadSubject(e.Stream) }

// Validate implements Event.
func (e *Dead) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	if e.OriginSubject == "" { // else any: strange subjects are a reason to die, and what refused them here would be met for ever
		return Invalid("origin_subject", "is missing")
	}
	return nil
}

// Cut reports whether bytes of the original are missing. Where their number was
// not told, a letter of the greatest length counts as cut.
func (e *Dead) Cut() bool {
	return e.OriginBytes > len(e.Data) || e.OriginBytes == 0 && len(e.Data) >= MaxDeadBytes
}

// Replayed is dead.<stream>.replayed: the bytes of a dead letter were published
// again on their origin subject.
type Replayed struct {
	Stamp
	Stream           string `json:"stream" ch:"stream"`                       // where the message lay and lies again, upper case
	OriginSequence   uint64 `json:"origin_sequence" ch:"origin_sequence"`     // its place there when it died
	LetterID         string `json:"letter_id" ch:"letter_id"`                 // event_id of the letter
	LetterSequence   uint64 `json:"letter_sequence" ch:"letter_sequence"`     // of the letter in the stream DEAD
	DataDigest       string `json:"data_digest" ch:"data_digest"`             // sha256 of the bytes, in hex: with letter_id it names all copies of the letter
	ReplayedID       string `json:"replayed_id" ch:"replayed_id"`             // event_id of what was published
	ReplayedSequence uint64 `json:"replayed_sequence" ch:"replayed_sequence"` // its place in stream
}

// Subject implements Event.
func (e *Replayed) Subject() string { return DeadReplayedSubject(e.Stream) }

// Validate implements Event.
func (e *Replayed) Validate() error {
	if err := e.Stamp.validate(); err != nil {
		return err
	}
	if e.LetterID == "" {
		return Invalid("letter_id", "is missing")
	}
	if len(e.DataDigest) != 64 {
		return Invalid("data_digest", "%q is not a sha256 in hex", clip(e.DataDigest))
	}
	return nil
}
