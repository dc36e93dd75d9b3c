package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
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
	Ready       func() // called once, when requests are answered; may be nil
}

// Endpoint answers one subject.
type Endpoint struct {
	subject string
	handle  func(ctx context.Context, subject string, data []byte) (any, error) // subject as it was asked
}

// Handle returns an endpoint whose requests are read strictly into Q, checked,
// and handed to handle. Its error crosses the wire as a schemas.Error.
func Handle[Q any, R interface {
	*Q
	schemas.Request
}](subject string, handle func(ctx context.Context, q R) (any, error)) Endpoint {
	return answering(subject, func(ctx context.Context, _ string, q R) (any, error) { return handle(ctx, q) })
}

// HandlePerson is Handle of what persons ask for themselves: it answers the
// subject with any person before it, and handle is told which one it was. NATS
// vouches for the name where users may publish under their own only.
func HandlePerson[Q any, R interface {
	*Q
	schemas.Request
}](subject string, handle func(ctx context.Context, person string, q R) (any, error)) Endpoint {
	return answering(schemas.PersonSubject("*", subject), handle)
}

func answering[Q any, R interface {
	*Q
	schemas.Request
}](subject string, handle func(ctx context.Context, person string, q R) (any, error)) Endpoint {
	return Endpoint{subject: subject, handle: func(ctx context.Context, asked string, data []byte) (any, error) {
		q := R(new(Q))
		if err := schemas.DecodeRequest(data, q); err != nil {
			return nil, err
		}
		person, _ := schemas.SplitPerson(asked)
		return handle(ctx, person, q)
	}}
}

// HandleEvent answers events that persons tell of their jobs, each with whose
// connection it came from; the reply of handle is that of the endpoint.
func HandleEvent(subject string, handle func(ctx context.Context, person string, e schemas.Event) (any, error)) Endpoint {
	return Endpoint{subject: schemas.PersonSubject("*", subject), handle: func(ctx context.Context, asked string, data []byte) (any, error) {
		person, plain := schemas.SplitPerson(asked)
		e, err := schemas.Parse(plain, data)
		if err != nil {
			return nil, err
		}
		return handle(ctx, person, e)
	}}
}

// statusOf translates the codes of schemas to NATS service error codes, which
// follow HTTP.
var statusOf = map[schemas.Code]string{
	schemas.CodeInvalid: "400", schemas.CodeNotFound: "404", schemas.CodeConflict: "409", schemas.CodeUnavailable: "503", schemas.CodeInternal: "500",
	schemas.CodeForbidden: "403",
}

// Serve answers requests in the queue group of the service until ctx ends;
// requests in hand are answered first. Each endpoint answers one request at a time.
func (b *Bus) Serve(ctx context.Context, s Service) error {
	svc, err := micro.AddService(b.nc, micro.Config{Name: s.Name, Version: s.Version, Description: s.Description, QueueGroup: s.Name})
	if err != nil {
		return fmt.Errorf("add service %s: %w", s.Name, err)
	}
	// Requests in hand are answered after ctx ends: Stop drains.
	handling := context.WithoutCancel(ctx)
	for _, e := range s.Endpoints {
		ok := b.metrics.requests.WithLabelValues(e.subject, "ok") // looked up once: most answers are
		handler := micro.HandlerFunc(func(r micro.Request) { b.answer(handling, e, r, ok) })
		name := micro.WithEndpointSubject(e.subject)
		if err := svc.AddEndpoint(endpointName(e.subject), handler, name); err != nil {
			_ = svc.Stop() // the first error is the one to report
			return fmt.Errorf("add endpoint %s: %w", e.subject, err)
		}
	}
	if err := b.nc.Flush(); err != nil {
		b.log.Warn("service is announced late", "service", s.Name, "error", err)
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

// endpointName is the subject as micro accepts a name.
func endpointName(subject string) string {
	return strings.NewReplacer(".", "-", "*", "any").Replace(subject)
}

// buffers are those that replies are written to. The connection copies what it is
// to send, so that each serves again.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// answer handles one request and measures it, by ok if it is not refused. The
// subject label is bounded: it is the endpoint's own.
func (b *Bus) answer(ctx context.Context, e Endpoint, r micro.Request, ok prometheus.Observer) {
	begin, took := time.Now(), ok
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	err := b.reply(ctx, e, r, buffer)
	if err != nil {
		refusal := schemas.AsError(err)
		took = b.metrics.requests.WithLabelValues(e.subject, string(refusal.Code))
		if refusal.Code == schemas.CodeInternal {
			b.log.Error("request failed", "subject", e.subject, "error", err)
		}
		body, _ := json.Marshal(refusal) // three strings: cannot fail
		status := statusOf[refusal.Code]
		if status == "" {
			status = "500" // a code of a later version
		}
		err = r.Error(status, refusal.Error(), body)
	} else {
		err = r.Respond(*buffer)
	}
	if err != nil {
		b.log.Warn("reply not sent", "subject", e.subject, "error", err)
	}
	took.Observe(time.Since(begin).Seconds())
}

// reply calls the handler and encodes what it returns into buffer. A panic of either is
// logged with its stack, counted, and becomes an error: one request never ends the
// process.
func (b *Bus) reply(ctx context.Context, e Endpoint, r micro.Request, buffer *[]byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b.metrics.panics.WithLabelValues(e.subject).Inc()
			b.log.Error("request handler panicked", "subject", e.subject, "panic", p,
				"stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	reply, err := e.handle(ctx, r.Subject(), r.Data())
	if err != nil {
		return err
	}
	*buffer, err = schemas.Append((*buffer)[:0], reply)
	return err
}

// errPanicked is the error of a request whose handler panicked.
var errPanicked = errors.New("the handler panicked")

// Request asks and reads the reply into reply. A refusal comes back as
// *schemas.Error; where nobody answers its code is CodeUnavailable. A person
// asks for himself.
func (b *Bus) Request(ctx context.Context, subject string, request, reply any) error {
	if b.person {
		subject = schemas.PersonSubject(b.user, subject)
	}
	return b.ask(ctx, subject, request, reply)
}

// RequestFor is Request in the name of a person, by a service that knows who asks.
func (b *Bus) RequestFor(ctx context.Context, person, subject string, request, reply any) error {
	return b.ask(ctx, schemas.PersonSubject(person, subject), request, reply)
}

func (b *Bus) ask(ctx context.Context, subject string, request, reply any) error {
	data, err := schemas.Marshal(request)
	if err != nil {
		return err
	}
	ctx, done := b.permitted(ctx, subject)
	msg, err := b.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err = done(err); errors.Is(err, schemas.ErrForbidden) {
		return err
	}
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("request %s: %w", subject, err)
		}
		return fmt.Errorf("request %s: %w", subject, noAnswer(subject, err))
	}
	if msg.Header.Get(micro.ErrorCodeHeader) != "" {
		refusal := &schemas.Error{}
		if err := json.Unmarshal(msg.Data, refusal); err != nil || refusal.Code == "" {
			refusal = &schemas.Error{Code: schemas.CodeInternal, Message: msg.Header.Get(micro.ErrorHeader)}
		}
		return refusal
	}
	if err := json.Unmarshal(msg.Data, reply); err != nil {
		return fmt.Errorf("read the reply of %s: %w", subject, err)
	}
	return nil
}

// noAnswer says in the user's words that nobody serves a subject.
func noAnswer(subject string, err error) error {
	message := "nats does not answer"
	if errors.Is(err, nats.ErrNoResponders) {
		message = "no service answers " + subject + "; is courier running?"
	}
	return fmt.Errorf("%w (%w)", &schemas.Error{Code: schemas.CodeUnavailable, Message: message}, err)
}
