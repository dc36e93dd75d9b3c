package containers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The load sends requests over HTTP and NATS, and publishes events. A request without an answer
// is repeated after a pause.
const (
	answerTimeout = 3 * time.Second
	retryPause    = 3 * time.Second // longer than the restart of a single gateway

	// While containers are replaced one by one, the second retry must succeed: the first attempt
	// may fall into the election of a leader, and the first retry, 6 s later, into the replacement
	// of the next server. After a crash a stream has no leader for 4 to 9 s (nats-server 2.15,
	// raft.go: the election timeout is fixed), so clients must retry more often.
	retriesRolled  = 2
	retriesDamaged = 5
)

// requestKind is a kind of request of the load.
type requestKind struct {
	name   string
	share  int // of ten requests
	send   func(l *load, ctx context.Context, id string) (reply string, err error)
	stored string // query for the IDs of answered requests; "" if they are not stored
}

var requestKinds = []requestKind{
	{name: "predict over HTTP", share: 5, send: (*load).predict},
	{
		name:   "submit over HTTP",
		share:  1,
		send:   (*load).submitHTTP,
		stored: "SELECT job_id FROM job_submitted",
	},
	{
		name:   "submit over NATS",
		share:  1,
		send:   (*load).submitNATS,
		stored: "SELECT job_id FROM job_submitted",
	},
	{
		name:   "event over NATS",
		share:  3,
		send:   (*load).publish,
		stored: "SELECT concat(boot_id, '-', number) FROM node_sample WHERE node = 'load'",
	},
}

// requestCounts counts the outcomes of the requests of one kind.
type requestCounts struct {
	sent, retried int
	reasons       map[string]int
	failed        []string
	answered      map[string]answered // by ID
	at            []time.Time         // of each answer
}

// answered describes the answer to a request, to investigate the loss of its data.
type answered struct {
	sent, at time.Time
	reply    string
	failures []error // of earlier attempts
}

// load sends requests at a constant rate until it is stopped.
type load struct {
	*composeCluster
	name    string // prefix of its request IDs
	began   time.Time
	retries int // after the first attempt
	nc      *nats.Conn
	js      jetstream.JetStream
	sample  object

	cancel context.CancelFunc
	wait   sync.WaitGroup
	mu     sync.Mutex
	counts map[string]*requestCounts // by kind
}

// startLoad starts a load.
func startLoad(t *testing.T, c *composeCluster, name string, perSecond, retries int) *load {
	t.Helper()
	l := &load{
		composeCluster: c,
		name:           name,
		began:          time.Now(),
		retries:        retries,
		counts:         map[string]*requestCounts{},
	}
	if err := json.Unmarshal([]byte(readFile(t, root+
		"/schemas/testdata/sample.json")), &l.sample); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.nc, err = nats.Connect(c.nats, nats.MaxReconnects(-1), nats.ReconnectWait(
		250*time.Millisecond,
	), nats.Timeout(2*time.Second),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.nc.Close)
	if l.js, err = jetstream.New(l.nc); err != nil {
		t.Fatal(err)
	}
	var order []requestKind
	for _, k := range requestKinds {
		l.counts[k.name] = &requestCounts{
			answered: map[string]answered{},
			reasons:  map[string]int{},
		}
		for range k.share {
			order = append(order, k)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wait.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for n := 1; ; {
			// On a busy machine the ticker drops ticks.
			for due := int(time.Since(l.began).Seconds() * float64(perSecond)); n <= due; n++ {
				k, id := order[n%len(order)], fmt.Sprintf("%s-%d", name, n)
				l.wait.Go(func() { l.try(k, id) })
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return l
}

// localAddress matches the part of an error that differs between connections.
var localAddress = regexp.MustCompile(`127\.0\.0\.1:\d+->`)

// try sends a request, repeats it after failures, and counts the outcome.
func (l *load) try(k requestKind, id string) {
	a := answered{sent: time.Now()}
	var err error
	for {
		if a.reply, err = l.once(k, id); err == nil {
			break
		}
		a.failures = append(a.failures, err)
		if len(a.failures) > l.retries {
			break
		}
		<-time.After(retryPause)
	}
	a.at = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	y := l.counts[k.name]
	y.sent++
	if len(a.failures) > 0 {
		y.retried++
		y.reasons[a.sent.Format(time.TimeOnly)+" "+localAddress.ReplaceAllString(
			strings.TrimSpace(a.failures[0].Error()), "",
		)]++
	}
	if err != nil {
		y.failed = append(y.failed,
			fmt.Sprintf("%s sent at %s: %v", id, a.sent.Format(time.StampMilli),
				errors.Join(a.failures...)))
		return
	}
	y.answered[id], y.at = a, append(y.at, a.at)
}

func (l *load) once(k requestKind, id string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	return k.send(l, ctx, id)
}

func (l *load) predict(_ context.Context, _ string) (string, error) {
	return l.requestHTTP("/api/v1/predict", jobRequest, 200)
}

func (l *load) submitHTTP(_ context.Context, id string) (string, error) {
	return l.requestHTTP("/api/v1/jobs", jobRequestWithID(id), 201)
}

// jobRequestWithID returns the job request with an ID, so that a retry creates no second job.
func jobRequestWithID(id string) object {
	q := object{"id": id}
	for key, value := range jobRequest {
		q[key] = value
	}
	return q
}

func (l *load) requestHTTP(path string, q object, want int) (string, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	status, answer, err := l.post(path, body, answerTimeout)
	if err == nil && status != want {
		err = fmt.Errorf("%d %s", status, answer)
	}
	return fmt.Sprint(status), err
}

func (l *load) submitNATS(ctx context.Context, id string) (string, error) {
	body, err := json.Marshal(jobRequestWithID(id))
	if err != nil {
		return "", err
	}
	m, err := l.nc.RequestWithContext(ctx, "job.submit", body)
	if err == nil && m.Header.Get("Nats-Service-Error-Code") != "" {
		err = errors.New(string(m.Data))
	}
	return "advice", err
}

// publish publishes a sample of a node, like a collector.
func (l *load) publish(ctx context.Context, id string) (string, error) {
	var number int
	if _, err := fmt.Sscanf(id, l.name+"-%d", &number); err != nil {
		return "", err
	}
	s := object{}
	for key, value := range l.sample {
		s[key] = value
	}
	s["node"], s["boot_id"], s["number"], s["at"] = "load", l.name, number, time.Now().UTC()
	event := fmt.Sprintf("load/%s/%d", l.name, number)
	s["event_id"] = event
	body, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	ack, err := l.js.Publish(ctx, "node.load.sample", body, jetstream.WithMsgID(event))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sequence %d, duplicate %v", ack.Sequence, ack.Duplicate), nil
}

// pause returns the longest time since an instant without an answer to a kind of request.
func (l *load) pause(name string, since time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Clone(l.counts[name].at)
	slices.SortFunc(at, time.Time.Compare)
	last, longest := since, time.Duration(0)
	for _, now := range append(at, time.Now()) {
		if now.After(since) {
			longest = max(longest, now.Sub(last))
			last = now
		}
	}
	return longest
}

// stop ends the load after every request has its answer, and reports failed requests.
func (l *load) stop(t *testing.T) {
	t.Helper()
	l.cancel()
	asked := time.Since(l.began)
	l.wait.Wait()
	sent := 0
	for _, k := range requestKinds {
		y := l.counts[k.name]
		sent += y.sent
		t.Logf("%s: %-18s %5d requests, %3d of them answered at a later attempt, %d failed",
			l.name, k.name, y.sent, y.retried, len(y.failed))
		for reason, n := range y.reasons {
			t.Logf("%7d times: %s", n, reason)
		}
		if len(y.failed) > 0 {
			t.Errorf("%s: %d failed:\n%s", k.name, len(y.failed),
				strings.Join(y.failed[:min(len(y.failed), 10)], "\n"))
		}
	}
	t.Logf("%s: %.0f requests per second for %.0f s", l.name, float64(sent)/asked.Seconds(),
		asked.Seconds())
}

// checkStored waits until the data of every answered request is in the tables.
func (l *load) checkStored(t *testing.T) {
	t.Helper()
	for _, k := range requestKinds {
		if k.stored == "" {
			continue
		}
		want := map[string]answered{}
		for id, a := range l.counts[k.name].answered {
			want[id] = a
		}
		count := len(want)
		await(t, time.Minute, "acknowledged requests in the tables", func() error {
			answer, err := l.sql(t, k.stored)
			if err != nil {
				return err
			}
			for _, id := range strings.Fields(answer) {
				delete(want, id)
			}
			for id, a := range want {
				return fmt.Errorf("%s: %d of %d acknowledged requests are not stored, such as %s, "+
					"sent at %s, answered at %s with %s after %v",
					k.name,
					len(want),
					count,
					id,
					a.sent.Format(time.StampMilli),
					a.at.Format(time.StampMilli),
					a.reply,
					a.failures)
			}
			return nil
		})
		t.Logf("%-18s %5d acknowledged, all in the tables", k.name, count)
	}
}
