package schemas

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Request subjects have two tokens. No stream's filter may match one: the client would receive the
// stream's ack instead of the service's reply.
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

// The last tokens of event subjects: job.<id>.<event>, node.<node>.<event>,
// regressor.<target>.<event> and dead.<stream>.<event>.
const (
	EventSubmitted = "submitted"
	EventStarted   = "started"
	EventEpoch     = "epoch"
	EventFinished  = "finished"
	EventFailed    = "failed"
	EventCancelled = "cancelled"
	EventLost      = "lost"
	EventFound     = "found"
	EventAdmitted  = "admitted"
	EventAdvice    = "advice"
	EventRisk      = "risk"
	EventMoved     = "moved"
	EventAlive     = "alive" // core NATS, not stored
	EventSample    = "sample"
	EventTrained   = "trained"
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

// DeadSubject returns dead.<stream> in lower case, the subject of dead letters.
func DeadSubject(stream string) string { return "dead." + strings.ToLower(stream) }

// DeadReplayedSubject returns dead.<stream>.replayed in lower case; "*" makes a filter.
func DeadReplayedSubject(stream string) string { return DeadSubject(stream) + "." + EventReplayed }

// PersonalEvents lists the last tokens of the stored events that users publish for their own jobs.
func PersonalEvents() []string {
	return []string{EventStarted, EventEpoch, EventFinished, EventFailed, EventCancelled, EventMoved}
}

// PersonSubject returns person.<person>.<subject> for a request or event that a user sends for
// themselves, and any other subject unchanged; "*" as the person makes a filter. Such subjects have
// four or five tokens, so no stream's filter and no other request matches them.
func PersonSubject(person, subject string) string {
	if !personal(subject) {
		return subject
	}
	return "person." + person + "." + subject
}

// personal reports whether users send the subject for themselves: requests that concern their own
// jobs, and the events of these jobs.
func personal(subject string) bool {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 3 || tokens[0] != "job" {
		return subject == SubjectJobSubmit || subject == SubjectJobCancel
	}
	return tokens[2] == EventAlive || slices.Contains(PersonalEvents(), tokens[2])
}

// SplitPerson is the inverse of PersonSubject: it returns the person and the plain subject. For any
// other subject the person is "".
func SplitPerson(subject string) (person, plain string) {
	rest, ok := strings.CutPrefix(subject, "person.")
	if !ok {
		return "", subject
	}
	person, plain, _ = strings.Cut(rest, ".")
	return person, plain
}

// InboxPrefix returns the prefix of a user's reply subjects, to which no other user may subscribe.
func InboxPrefix(user string) string { return "_INBOX_" + user }

// Operator is the user who administers a cluster and may send requests and events for all users, on
// the plain subjects.
const Operator = "operator"

// NodeName returns the node name of a host: its name in lower case, truncated to 64 characters,
// with "-" for every invalid character.
func NodeName(host string) string {
	b := []byte(strings.ToLower(host[:min(len(host), MaxTokenLength)]))
	for i := range b {
		if !ValidToken(string(b[i : i+1])) {
			b[i] = '-'
		}
	}
	return cmp.Or(string(b), "node")
}

// LocalNodeName returns the name of the node on which this process runs.
func LocalNodeName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("get host name: %w", err)
	}
	return NodeName(host), nil
}
