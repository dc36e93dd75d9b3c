package schemas

import "cmp"

// Dead is dead.<stream>, a dead letter: an unreadable message with its bytes.
type Dead struct {
	Stamp
	// Stream of the original message, in upper case.
	Stream string `json:"stream" ch:"stream"`
	// Sequence of the original message in that stream.
	OriginSequence uint64 `json:"origin_sequence" ch:"origin_sequence"`
	OriginSubject  string `json:"origin_subject" ch:"origin_subject"`
	// Consumer that could not read the message.
	Consumer string `json:"consumer" ch:"consumer"`
	Reason   string `json:"reason" ch:"reason"`
	// Original bytes, base64 in JSON, truncated to 128 KiB.
	Data []byte `json:"data" ch:"data"`
	// Size of the whole original.
	OriginBytes int `json:"origin_bytes" ch:"origin_bytes"`
}

// MaxDeadBytes is the maximum number of original bytes in a dead letter.
const MaxDeadBytes = 128 << 10

// Subject implements Event.
func (e *Dead) Subject() string { return DeadSubject(e.Stream) }

// Validate implements Event. It accepts any non-empty origin subject: a strange subject is one
// reason for a dead letter, and a refused dead letter would be redelivered forever.
func (e *Dead) Validate() error {
	return cmp.Or(e.Stamp.validate(), required("origin_subject", e.OriginSubject, "the subject of the message"))
}

// Truncated reports whether bytes of the original are missing.
func (e *Dead) Truncated() bool { return e.OriginBytes > len(e.Data) }

// Replayed is dead.<stream>.replayed: the bytes of a dead letter were published again on their
// origin subject.
type Replayed struct {
	Stamp
	// Stream of the original message and of its copy, in upper case.
	Stream string `json:"stream" ch:"stream"`
	// Sequence of the original message in that stream.
	OriginSequence uint64 `json:"origin_sequence" ch:"origin_sequence"`
	// event_id of the dead letter.
	LetterID string `json:"letter_id" ch:"letter_id"`
	// Sequence of the dead letter in the stream DEAD.
	LetterSequence uint64 `json:"letter_sequence" ch:"letter_sequence"`
	// sha256 of the bytes, in hex; letter_id and data_digest identify all copies of the letter.
	DataDigest string `json:"data_digest" ch:"data_digest"`
	// event_id of the published event.
	ReplayedID string `json:"replayed_id" ch:"replayed_id"`
	// Sequence of the published event in its stream.
	ReplayedSequence uint64 `json:"replayed_sequence" ch:"replayed_sequence"`
}

// Subject implements Event.
func (e *Replayed) Subject() string { return DeadReplayedSubject(e.Stream) }

// Validate implements Event.
func (e *Replayed) Validate() error {
	if len(e.DataDigest) != 64 {
		return Invalid("data_digest", "%q is not a sha256 in hex", Clip(e.DataDigest))
	}
	return cmp.Or(e.Stamp.validate(), required("letter_id", e.LetterID, "the event_id of the dead letter"))
}
