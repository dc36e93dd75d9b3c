package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// permissions reports violations of the permissions of a user. The server reports a violation
// outside of the request, and sends no answer to it.
type permissions struct {
	log     *slog.Logger
	user    string   // "" if the server requires no authentication
	pending sync.Map // *pendingSend to context.CancelCauseFunc
}

type pendingSend struct{ subject string }

// violated cancels the pending sends on a subject to which the user may not publish.
func (p *permissions) violated(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	// nats: permissions violation: Permissions Violation for Publish to "subject"
	text := err.Error()
	p.log.Warn("nats permission violation", "user", p.user, "error", text)
	p.pending.Range(func(key, cancel any) bool {
		if s := key.(*pendingSend); strings.Contains(text, `Publish to "`+s.subject+`"`) {
			cancel.(context.CancelCauseFunc)(forbidden(p.user, s.subject))
		}
		return true
	})
}

func forbidden(user, subject string) error {
	return &schemas.Error{
		Code:    schemas.CodeForbidden,
		Message: fmt.Sprintf("nats does not permit user %q to publish to %s", user, subject),
	}
}

// watch returns a context that is cancelled when the server forbids a message on subject. The
// caller passes the error of the call to done, which ends the watch and returns that error or,
// instead of it, the violation.
func (p *permissions) watch(
	ctx context.Context, subject string,
) (watched context.Context, done func(error) error) {
	if p.user == "" {
		return ctx, func(err error) error { return err }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &pendingSend{subject}
	p.pending.Store(s, cancel)
	return ctx, func(err error) error {
		p.pending.Delete(s)
		defer cancel(nil)
		if err != nil && errors.Is(context.Cause(ctx), schemas.ErrForbidden) {
			return context.Cause(ctx)
		}
		return err
	}
}
