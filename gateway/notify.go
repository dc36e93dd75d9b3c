package gateway

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Outward describes what the gateway shows of other systems and sends to them. The tags are those of
// the flags of courier gateway.
type Outward struct {
	JobLinks     map[string]string `name:"job-link" placeholder:"NAME=URL" help:"Link on the page of a job to another system, such as 'logs=https://logs.example/?q={id}'; {id}, {user}, {model}, {dataset} and {node} are replaced." env:"COURIER_JOB_LINK"`
	Notify       string            `placeholder:"URL" help:"Send notifications to this webhook, in the format of Slack: jobs at risk, their all-clears, lost jobs, missed SLOs, drifts, and runs that are not learned from. Set it for one gateway of a cluster." env:"COURIER_NOTIFY"`
	NotifySecret string            `placeholder:"TEXT" help:"Sign notifications with this key: the header Courier-Signature has the time and the HMAC-SHA256, in hex, of the time, a dot and the body." env:"COURIER_NOTIFY_SECRET"`
	NotifyUsers  []string          `name:"notify-user" placeholder:"USER" help:"Notify only of jobs of these users." env:"COURIER_NOTIFY_USER"`
	NotifyLabels []string          `name:"notify-label" placeholder:"LABEL" help:"Notify only of jobs with one of these labels, name or name=value." env:"COURIER_NOTIFY_LABEL"`
}

func (o *Outward) validate() error {
	for name, address := range o.JobLinks {
		if !isWebAddress(address) {
			return fmt.Errorf("job link %q: want an http or https address, such as https://logs.example/?q={id}",
				name)
		}
	}
	if o.Notify != "" && !isWebAddress(o.Notify) {
		return errors.New("notify: want an http or https address") // the address may be a secret
	}
	return nil
}

func isWebAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Kinds of notifications.
const (
	notifyRisk       = "risk"
	notifyCleared    = "cleared"
	notifyLost       = "lost"
	notifyMissed     = "missed"
	notifyDrift      = "drift"
	notifyNotLearned = "not_learned"
)

// Results of notifications, for the metric.
const (
	notifySent    = "sent"
	notifyFailed  = "failed"
	notifyDropped = "dropped" // too many waited
)

// Notification is the body that a webhook receives. Slack shows its text.
type Notification struct {
	Text    string            `json:"text"`
	Kind    string            `json:"kind"` // risk, cleared, lost, missed, drift or not_learned
	EventID string            `json:"event_id"`
	At      time.Time         `json:"at"`
	JobID   string            `json:"job_id,omitempty"` // absent for a drift
	User    string            `json:"user,omitempty"`
	Model   string            `json:"model,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// Bounds of the notifications.
const (
	maxNotices   = 1000             // events that wait; later ones are dropped
	maxUnlearned = 1000             // ended jobs that may yet turn out not to be learned from
	learnChecks  = 5                // promotions after which such a job counts as learned from
	sendTimeout  = 10 * time.Second // of one attempt
	sendAttempts = 4
)

// notifier sends notifications one after the other. Only its Run sends, so that a slow receiver delays
// nobody else.
type notifier struct {
	o       Outward
	status  func(ctx context.Context, jobID string) (schemas.JobStatus, error)
	log     *slog.Logger
	counter *prometheus.CounterVec // by result
	client  *http.Client
	pause   time.Duration // before the second attempt; it grows fivefold with each

	events    chan schemas.Event
	unlearned map[string]int // job to the number of promotions since its end
}

func newNotifier(
	o Outward, status func(context.Context, string) (schemas.JobStatus, error), log *slog.Logger,
	counter *prometheus.CounterVec,
) *notifier {
	return &notifier{
		o:       o,
		status:  status,
		log:     log,
		counter: counter,
		client: &http.Client{
			Timeout:       sendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		pause:     time.Second,
		events:    make(chan schemas.Event, maxNotices),
		unlearned: map[string]int{},
	}
}

// take queues an event that may be worth a notification. It never blocks.
func (n *notifier) take(e schemas.Event) {
	switch e.(type) {
	case *schemas.Risk, *schemas.Ended, *schemas.Drift, *schemas.Promoted:
	default:
		return
	}
	select {
	case n.events <- e:
	default:
		n.counter.WithLabelValues(notifyDropped).Inc()
	}
}

// run sends notifications until ctx ends.
func (n *notifier) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-n.events:
			for _, notice := range n.notices(ctx, e) {
				n.deliver(ctx, &notice)
			}
		}
	}
}

// notices returns the notifications about an event.
func (n *notifier) notices(ctx context.Context, e schemas.Event) []Notification {
	switch e := e.(type) {
	case *schemas.Drift:
		if e.State == schemas.DriftActive && len(n.o.NotifyUsers)+len(n.o.NotifyLabels) == 0 {
			return []Notification{{Text: "Drift: " + e.Message, Kind: notifyDrift, EventID: e.EventID, At: e.At}}
		}
	case *schemas.Risk:
		return n.ofRisk(ctx, e)
	case *schemas.Ended:
		return n.ofEnd(ctx, e)
	case *schemas.Promoted:
		return n.ofPromotion(ctx, e)
	}
	return nil
}

// ofRisk returns the notification about a warning or an all-clear.
func (n *notifier) ofRisk(ctx context.Context, e *schemas.Risk) []Notification {
	s, err := n.status(ctx, e.JobID)
	if err != nil {
		n.statusUnknown(e.JobID, err)
		return nil
	}
	switch {
	case !n.wants(&s):
		return nil
	case e.Cleared:
		return []Notification{about(&s, notifyCleared, &e.Stamp, e.Message)}
	}
	return []Notification{about(&s, notifyRisk, &e.Stamp, "at risk: "+e.Message)}
}

// statusUnknown counts an event that may have needed a notification, and logs why its job's status is
// unknown.
func (n *notifier) statusUnknown(jobID string, err error) {
	n.counter.WithLabelValues(notifyFailed).Inc()
	n.log.Warn("notification not sent, because the status of its job is unknown", "job_id", jobID, "error", err)
}

// ofEnd returns the notification about a lost job or a missed SLO. It remembers a job that may turn out
// not to be learned from.
func (n *notifier) ofEnd(ctx context.Context, e *schemas.Ended) []Notification {
	s, err := n.endedStatus(ctx, e)
	if err != nil {
		n.statusUnknown(e.JobID, err)
		return nil
	}
	if !n.wants(&s) {
		return nil
	}
	n.checkLater(e.JobID)
	switch {
	case e.Outcome == schemas.EventLost:
		return []Notification{about(&s, notifyLost, &e.Stamp, "lost: "+e.Reason)}
	case s.MetSLO != nil && !*s.MetSLO:
		return []Notification{about(&s, notifyMissed, &e.Stamp, fmt.Sprintf("%s, and missed its SLO of %s",
			s.State, schemas.FormatSeconds(s.SLOSeconds)))}
	}
	return nil
}

// checkLater lets the next promotions check whether the champions learned from an ended job.
func (n *notifier) checkLater(jobID string) {
	if _, known := n.unlearned[jobID]; !known && len(n.unlearned) >= maxUnlearned {
		n.counter.WithLabelValues(notifyDropped).Inc()
		return
	}
	n.unlearned[jobID] = 0
}

// endedStatus returns the status of a job after its end, which the advisor may not have read yet.
func (n *notifier) endedStatus(ctx context.Context, e *schemas.Ended) (schemas.JobStatus, error) {
	for attempt := 1; ; attempt++ {
		s, err := n.status(ctx, e.JobID)
		if err != nil || s.State == schemas.State(e.Outcome) || attempt == sendAttempts {
			return s, err
		}
		if bus.Sleep(ctx, n.pause/4) != nil {
			return s, ctx.Err()
		}
	}
}

// ofPromotion returns the notifications about the ended jobs that the new champion did not learn from.
func (n *notifier) ofPromotion(ctx context.Context, e *schemas.Promoted) (all []Notification) {
	for job := range n.unlearned {
		s, err := n.status(ctx, job)
		if errors.Is(err, schemas.ErrUnavailable) {
			return all // the next promotion checks the other jobs
		}
		if err != nil {
			n.statusUnknown(job, err)
			delete(n.unlearned, job)
			continue
		}
		if n.unlearned[job]++; s.NotLearned != "" {
			all = append(all, about(&s, notifyNotLearned, &e.Stamp, "not learned from: "+s.NotLearned))
		}
		if s.NotLearned != "" || n.unlearned[job] >= learnChecks {
			delete(n.unlearned, job)
		}
	}
	return all
}

// wants reports whether the filters let the notifications about a job pass.
func (n *notifier) wants(s *schemas.JobStatus) bool {
	hasLabel := func(label string) bool { return schemas.HasLabel(s.Labels, label) }
	return (len(n.o.NotifyUsers) == 0 || slices.Contains(n.o.NotifyUsers, s.User)) &&
		(len(n.o.NotifyLabels) == 0 || slices.ContainsFunc(n.o.NotifyLabels, hasLabel))
}

// about returns a notification about a job.
func about(s *schemas.JobStatus, kind string, e *schemas.Stamp, text string) Notification {
	owner := ""
	if s.User != "" {
		owner = " of " + s.User
	}
	return Notification{
		Text:    fmt.Sprintf("Job %s (%s)%s: %s", s.JobID, s.Model, owner, text),
		Kind:    kind,
		EventID: e.EventID + "/" + kind,
		At:      e.At,
		JobID:   s.JobID,
		User:    s.User,
		Model:   s.Model,
		Labels:  s.Labels,
	}
}

// slackText escapes the characters with which Slack marks links and mentions.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// deliver sends a notification, and counts it.
func (n *notifier) deliver(ctx context.Context, notice *Notification) {
	notice.Text = slackText.Replace(notice.Text)
	body, err := schemas.Marshal(notice)
	if err == nil {
		err = n.post(ctx, body)
	}
	if err == nil {
		n.counter.WithLabelValues(notifySent).Inc()
		return
	}
	n.counter.WithLabelValues(notifyFailed).Inc()
	n.log.Warn("notification not sent", "kind", notice.Kind, "job_id", notice.JobID, "error", err)
}

// post sends a body, and tries again after failures that may pass.
func (n *notifier) post(ctx context.Context, body []byte) error {
	pause := n.pause
	for attempt := 1; ; attempt++ {
		again, err := n.send(ctx, body)
		if err == nil || !again || attempt == sendAttempts || bus.Sleep(ctx, pause) != nil {
			return err
		}
		pause *= 5
	}
}

// send posts a body once. again reports whether another attempt may succeed. An error does not contain
// the address, which may be a secret.
func (n *notifier) send(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.o.Notify, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("invalid address")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "courier")
	if n.o.NotifySecret != "" {
		r.Header.Set("Courier-Signature", signature(n.o.NotifySecret, time.Now(), body))
	}
	response, err := n.client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return true, failed.Err
	}
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // so that the connection can be used again
	if response.StatusCode < http.StatusMultipleChoices {
		return false, nil
	}
	again = response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests
	return again, fmt.Errorf("the receiver answers %s", response.Status)
}

// signature returns the value of the header Courier-Signature. The time lets a receiver refuse old copies.
func signature(secret string, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", at, body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
