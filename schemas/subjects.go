package schemas

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Request subjects: two tokens, answered by a service. No stream's filter may
// match one, else the stream's own ack answers the asker.
const (
	SubjectJobSubmit         = "job.submit"
	SubjectJobPredict        = "job.predict"
	SubjectJobStatus         = "job.status"
	SubjectJobList           = "job.list"
	SubjectJobCancel         = "job.cancel"
	SubjectJobScore          = "job.score"
	SubjectRegressorTrain    = "regressor.train"
	SubjectRegressorPromote  = "regressor.promote"
	SubjectRegressorRollback = "regressor.rollback"
	SubjectRegressorList     = "regressor.list"
)

// RequestSubjects lists every request subject.
func RequestSubjects() []string {
	return []string{SubjectJobSubmit, SubjectJobPredict, SubjectJobStatus, SubjectJobList, SubjectJobCancel, SubjectJobScore,
		SubjectRegressorTrain, SubjectRegressorPromote, SubjectRegressorRollback, SubjectRegressorList}
}

// Last tokens of event subjects: job.<id>.<event>, node.<node>.<event>,
// regressor.<target>.<event>, dead.<stream>.<event>.
const (
	EventSubmitted = "submitted"
	EventStarted   = "started"
	EventEpoch     = "epoch"
	EventFinished  = "finished"
	EventFailed    = "failed"
	EventCancelled = "cancelled"
	EventLost      = "lost"
	EventAdmitted  = "admitted"
	EventAdvice    = "advice"
	EventRisk      = "risk"
	EventMoved     = "moved"
	EventAlive     = "alive" // core NATS, not stored
	EventSample    = "sample"
	EventTrained   = "trained"
	EventFitting   = "fitting" // core NATS, not stored
	EventPromoted  = "promoted"
	EventRejected  = "rejected"
	EventDrift     = "drift"
	EventReplayed  = "replayed"
)

// JobSubject returns job.<id>.<event>; "*" as id or event makes a filter.
func JobSubject(id, event string) string { return "job." + id + "." + event }

// NodeSubject returns node.<node>.<event>.
func NodeSubject(node, event string) string { return "node." + node + "." + event }

// RegressorSubject returns regressor.<target>.<event>.
func RegressorSubject(target, event string) string { return "regressor." + target + "." + event }

// DeadSubject returns dead.<stream> in lower case, where messages go that could not be understood.
func DeadSubject(stream string) string { return "dead." + strings.ToLower(stream) }

// DeadReplayedSubject returns dead.<stream>.replayed in lower case; "*" makes a filter.
func DeadReplayedSubject(stream string) string { return DeadSubject(stream) + "." + EventReplayed }

// PersonalEvents lists the last tokens of events that persons tell of their jobs
// and that are kept.
func PersonalEvents() []string {
	return []string{EventStarted, EventEpoch, EventFinished, EventFailed, EventCancelled, EventMoved}
}

// PersonSubject returns person.<person>.<subject> for what a person asks or tells
// for himself, any other subject as it is; "*" as the person makes a filter. Such
// subjects have four tokens or five: no stream and no other request has them.
func PersonSubject(person, subject string) string {
	if !personal(subject) {
		return subject
	}
	return "person." + person + "." + subject
}

// personal are the requests that a person makes for himself only, and the events
// that he tells of his own jobs; all else is asked and told alike by everybody.
func personal(subject string) bool {
	t := strings.Split(subject, ".")
	if len(t) != 3 || t[0] != "job" {
		return subject == SubjectJobSubmit || subject == SubjectJobCancel
	}
	return t[2] == EventAlive || slices.Contains(PersonalEvents(), t[2])
}

// SplitPerson undoes PersonSubject: the person, and the subject without him. Of
// any other subject the person is "".
func SplitPerson(subject string) (person, plain string) {
	rest, ok := strings.CutPrefix(subject, "person.")
	if !ok {
		return "", subject
	}
	person, plain, _ = strings.Cut(rest, ".")
	return person, plain
}

// InboxPrefix is where a user's answers arrive: nobody else may listen there.
func InboxPrefix(user string) string { return "_INBOX_" + user }

// Operator is the user who looks after a cluster: as a person who may ask and
// tell for all, he speaks on the plain subjects.
const Operator = "operator"

// MaxTokenLength is the longest job ID, node name or target.
const MaxTokenLength = 64

// ValidToken reports whether s matches [a-z0-9_-]{1,64}.
func ValidToken(s string) bool {
	if s == "" || len(s) > MaxTokenLength {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func validateToken(field, s string) error {
	if !ValidToken(s) {
		return Invalid(field, "%q is not a name of 1 to 64 of a-z, 0-9, _ and -", clip(s))
	}
	return nil
}

// NodeName turns a host name into a node's name: lower case, at most 64
// characters, every other character becomes "-".
func NodeName(host string) string {
	if len(host) > MaxTokenLength {
		host = host[:MaxTokenLength]
	}
	b := []byte(strings.ToLower(host))
	for i := range b {
		if !ValidToken(string(b[i : i+1])) {
			b[i] = '-'
		}
	}
	if len(b) == 0 {
		return "node"
	}
	return string(b)
}

// LocalNodeName returns the name of the node this process runs on.
func LocalNodeName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name: %w", err)
	}
	return NodeName(host), nil
}

// clip shortens foreign text for an error message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
