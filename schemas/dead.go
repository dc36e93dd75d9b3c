package schemas

// Dead is dead.<stream>: a message that could not be understood, with its bytes.
type Dead struct {
	Stamp
	Stream         string `json:"stream" ch:"stream"`                   // where it lay, upper case
	OriginSequence uint64 `json:"origin_sequence" ch:"origin_sequence"` // its place there
	OriginSubject  string `json:"origin_subject" ch:"origin_subject"`
	Consumer       string `json:"consumer" ch:"consumer"` // who could not understand it
	Reason         string `json:"reason" ch:"reason"`
	Data           []byte `json:"data" ch:"data"` // original bytes, base64 in JSON; cut after 128 KiB
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
	return validateText("origin_subject", e.OriginSubject)
}
