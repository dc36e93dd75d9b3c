package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
)

// Service is a NATS micro service: nats micro ls finds it.
type Service struct {
	Name        string // letters, digits, - and _
	Version     string // semantic version
	Description string
	Endpoints   []Endpoint
	Ready       func() // called once, when the service accepts requests; may be nil
}

// Endpoint answers requests on one subject.
type Endpoint struct {
	subject string // may have a wildcard

	// handle gets the subject of the request.
	handle func(ctx context.Context, subject string, data []byte) (any, error)
}

// requestTo is a pointer to a struct Q that is a request.
type requestTo[Q any] interface {
	*Q
	schemas.Request
}

// Handle returns an endpoint that decodes requests strictly into Q, validates them and calls
// handle. The error of handle crosses the wire as a schemas.Error.
func Handle[Q any, R requestTo[Q]](subject string, handle func(ctx context.Context, q R) (any, error)) Endpoint {
	return newEndpoint(subject, func(ctx context.Context, _ string, q R) (any, error) {
		return handle(ctx, q)
	})
}

// HandlePerson is Handle for requests of persons: it answers the subject prefixed with any
// person, and passes that person to handle. The name is authentic if the server lets users
// publish under their own name only.
func HandlePerson[Q any, R requestTo[Q]](
	subject string, handle func(ctx context.Context, person string, q R) (any, error),
) Endpoint {
	return newEndpoint(schemas.PersonSubject("*", subject), handle)
}

func newEndpoint[Q any, R requestTo[Q]](
	subject string, handle func(ctx context.Context, person string, q R) (any, error),
) Endpoint {
	decodeAndHandle := func(ctx context.Context, requested string, data []byte) (any, error) {
		q := R(new(Q))
		if err := schemas.DecodeRequest(data, q); err != nil {
			return nil, err
		}
		person, _ := schemas.SplitPerson(requested)
		return handle(ctx, person, q)
	}
	return Endpoint{subject: subject, handle: decodeAndHandle}
}

// HandleEvent returns an endpoint for events that persons publish about their jobs. It passes the
// person to handle, and replies with the result of handle.
func HandleEvent(
	subject string, handle func(ctx context.Context, person string, e schemas.Event) (any, error),
) Endpoint {
	decodeAndHandle := func(ctx context.Context, requested string, data []byte) (any, error) {
		person, subject := schemas.SplitPerson(requested)
		e, err := schemas.Parse(subject, data)
		if err != nil {
			return nil, err
		}
		return handle(ctx, person, e)
	}
	return Endpoint{subject: schemas.PersonSubject("*", subject), handle: decodeAndHandle}
}

// statusOf translates the codes of schemas to NATS service error codes, which follow HTTP.
var statusOf = map[schemas.Code]string{
	schemas.CodeInvalid:     "400",
	schemas.CodeForbidden:   "403",
	schemas.CodeNotFound:    "404",
	schemas.CodeConflict:    "409",
	schemas.CodeInternal:    "500",
	schemas.CodeUnavailable: "503",
}

// Serve answers requests in the queue group of the service until ctx ends. It then answers the
// requests that have arrived, and returns. Each endpoint handles one request at a time; one that is
// listed several times handles as many at once.
func (b *Bus) Serve(ctx context.Context, s Service) error {
	svc, err := micro.AddService(b.nc, micro.Config{
		Name: s.Name, Version: s.Version, Description: s.Description, QueueGroup: s.Name,
	})
	if err != nil {
		return fmt.Errorf("add service %s: %w", s.Name, err)
	}

	handling := context.WithoutCancel(ctx) // Stop drains the requests that have arrived
	for _, e := range s.Endpoints {
		// Most requests succeed: look their metric up once.
		ok := b.metrics.requests.WithLabelValues(e.subject, "ok")
		handler := micro.HandlerFunc(func(r micro.Request) { b.answer(handling, e, r, ok) })
		name := strings.NewReplacer(".", "-", "*", "any").Replace(e.subject)
		if err := svc.AddEndpoint(name, handler, micro.WithEndpointSubject(e.subject)); err != nil {
			_ = svc.Stop() // the first error is the one to report
			return fmt.Errorf("add endpoint %s: %w", e.subject, err)
		}
	}

	if err := b.nc.Flush(); err != nil {
		b.log.Warn("service announcement delayed", "service", s.Name, "error", err)
	}
	if s.Ready != nil {
		s.Ready()
	}
	<-ctx.Done()
	if err := svc.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("stop service %s: %w", s.Name, err)
	}
	return nil
}

// ServiceInfo is a running instance of a service.
type ServiceInfo struct{ Name, Version string }

// serviceWait is how long Services waits for the next reply.
const serviceWait = 500 * time.Millisecond

// Services returns the instances of services that reply to a ping.
func (b *Bus) Services(ctx context.Context) (all []ServiceInfo, err error) {
	subject, err := micro.ControlSubject(micro.PingVerb, "", "")
	if err != nil {
		return nil, err
	}
	replies := make(chan *nats.Msg, maxQueued)
	sub, err := b.nc.ChanSubscribe(b.nc.NewInbox(), replies)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may be closed already
	ctx, done := b.permissions.watch(ctx, subject)
	if err := b.nc.PublishRequest(subject, sub.Subject, nil); err != nil {
		return nil, done(unavailable(err))
	}
	for {
		select {
		case m := <-replies:
			var info ServiceInfo
			if json.Unmarshal(m.Data, &info) == nil && info.Name != "" { // otherwise there are no responders
				all = append(all, info)
			}
		case <-time.After(serviceWait):
			return all, done(nil)
		case <-ctx.Done():
			return all, done(unavailable(ctx.Err()))
		}
	}
}

// answer handles one request and observes its duration, in ok if the request succeeds. The
// subject label is the endpoint's, so it has few values.
func (b *Bus) answer(ctx context.Context, e Endpoint, r micro.Request, ok prometheus.Observer) {
	start, duration := time.Now(), ok
	reply, err := b.reply(ctx, e, r)
	if err != nil {
		refusal := schemas.AsError(err)
		duration = b.metrics.requests.WithLabelValues(e.subject, string(refusal.Code))
		if refusal.Code == schemas.CodeInternal {
			b.log.Error("request failed", "subject", e.subject, "error", err)
		}
		body, _ := json.Marshal(refusal) // strings only: cannot fail
		status := statusOf[refusal.Code]
		status = cmp.Or(status, "500") // the code of a newer version
		err = r.Error(status, refusal.Error(), body)
	} else {
		err = r.Respond(reply)
	}
	if err != nil {
		b.log.Warn("reply not sent", "subject", e.subject, "error", err)
	}
	duration.Observe(time.Since(start).Seconds())
}

// reply calls the handler and encodes its result. A panic is logged with its
// stack, counted, and becomes an error, so that no request can end the process.
func (b *Bus) reply(ctx context.Context, e Endpoint, r micro.Request) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.metrics.panics.WithLabelValues(e.subject).Inc()
			b.log.Error("request handler panicked", "subject", e.subject, "panic", p,
				"stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	result, err := e.handle(ctx, r.Subject(), r.Data())
	if err != nil {
		return nil, err
	}
	return schemas.Marshal(result)
}

var errPanicked = errors.New("the handler panicked")

// requestTimeout bounds a Request whose context has no deadline.
const requestTimeout = 15 * time.Second

// Request sends a request and decodes the reply. An error of the service is a *schemas.Error;
// without an answer before the deadline its code is CodeUnavailable. If the user is a person, the
// subject names that person.
func (b *Bus) Request(ctx context.Context, subject string, request, reply any) error {
	if b.isPerson {
		subject = schemas.PersonSubject(b.permissions.user, subject)
	}
	return b.request(ctx, subject, request, reply)
}

// RequestFor is Request on behalf of a person whom the calling service has authenticated.
func (b *Bus) RequestFor(ctx context.Context, person, subject string, request, reply any) error {
	return b.request(ctx, schemas.PersonSubject(person, subject), request, reply)
}

func (b *Bus) request(ctx context.Context, subject string, request, reply any) error {
	data, err := schemas.Marshal(request)
	if err != nil {
		return err
	}
	if _, hasDeadline := ctx.Deadline(); !hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
		defer cancel()
	}
	ctx, done := b.permissions.watch(ctx, subject)
	var msg *nats.Msg
	if err = b.awaitConnection(ctx); err == nil {
		msg, err = b.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	}
	if err = done(err); errors.Is(err, schemas.ErrForbidden) {
		return err
	}
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("request %s: %w", subject, err)
		}
		return fmt.Errorf("request %s: %w", subject, b.explainNoAnswer(subject, err))
	}

	if msg.Header.Get(micro.ErrorCodeHeader) != "" {
		refusal := &schemas.Error{}
		if err := json.Unmarshal(msg.Data, refusal); err != nil || refusal.Code == "" {
			message := msg.Header.Get(micro.ErrorHeader)
			refusal = &schemas.Error{Code: schemas.CodeInternal, Message: message}
		}
		return refusal
	}
	if err := json.Unmarshal(msg.Data, reply); err != nil {
		return fmt.Errorf("decode the reply of %s: %w", subject, err)
	}
	return nil
}

func (b *Bus) explainNoAnswer(subject string, err error) error {
	message := "no answer to " + subject + " in time"
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		message = "no service of Courier answers " + subject
	case !b.nc.IsConnected():
		message = "nats at " + b.address + " does not answer"
	}
	wire := &schemas.Error{Code: schemas.CodeUnavailable, Message: message}
	return fmt.Errorf("%w (%w)", wire, err)
}
