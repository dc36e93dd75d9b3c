package bus

import (
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// FollowOptions selects the messages to deliver.
type FollowOptions struct {
	Stream         string
	Subjects       []string // filters, in which * matches any token; empty: the whole stream
	From           uint64   // first sequence; 0: the oldest message
	Until          uint64   // last sequence; 0: no end
	LastPerSubject bool     // of the stored messages, deliver only the last of each subject
	New            bool     // deliver no stored messages

	Progress func(sequence uint64) // called after every message, also after filtered ones
	CaughtUp func()                // called once, after the messages stored at the start

	storedOnly bool                // deliver no messages published after the start
	undecoded  func(storedMessage) // gets the messages instead of the handler
}

// serverFilters are the filters that the server applies. For several filters with wildcards
// the server walks over all subjects of a block per message (2.14, LoadNextMsgMulti), and each
// job has its own subjects. In that case the server sends all messages, and selects filters
// them.
func (o *FollowOptions) serverFilters() []string {
	if len(o.Subjects) > 1 && !o.LastPerSubject {
		return nil
	}
	return o.Subjects
}

// selects reports whether a subject matches one of several filters. The server applies a
// single filter.
func (o *FollowOptions) selects(subject string) bool {
	matches := func(filter string) bool { return subjectMatches(filter, subject) }
	return len(o.Subjects) < 2 || slices.ContainsFunc(o.Subjects, matches)
}

// subjectMatches reports whether a subject has the tokens of a filter, in which * matches any
// token.
func subjectMatches(filter, subject string) bool {
	for {
		want, filterRest, moreFilter := strings.Cut(filter, ".")
		have, subjectRest, moreSubject := strings.Cut(subject, ".")
		if want != "*" && want != have || moreFilter != moreSubject {
			return false
		}
		if !moreFilter {
			return true
		}
		filter, subject = filterRest, subjectRest
	}
}

// advance moves the options past a message. It reports whether the message completes the last
// messages per subject.
func (o *FollowOptions) advance(meta *jetstream.MsgMetadata) (lastDelivered bool) {
	o.From = meta.Sequence.Stream + 1
	if o.Progress != nil {
		o.Progress(meta.Sequence.Stream)
	}
	if meta.NumPending > 0 {
		return false
	}
	o.caughtUp()
	lastDelivered = o.LastPerSubject
	o.LastPerSubject = false
	return lastDelivered
}

func (o *FollowOptions) caughtUp() {
	if o.CaughtUp != nil {
		o.CaughtUp()
		o.CaughtUp = nil
	}
}

type handlerError struct{ error }
