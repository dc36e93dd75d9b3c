package bus

import (
	"context"
	"courier/schemas"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var unavailableErrors = []error{
	nats.ErrNoResponders,
	nats.ErrTimeout,
	nats.ErrConnectionClosed,
	nats.ErrDisconnected,
	nats.ErrConnectionReconnecting,
	nats.ErrReconnectBufExceeded,
	jetstream.ErrNoStreamResponse,
	context.DeadlineExceeded,
}

// unavailable gives the errors of a server that does not answer the code CodeUnavailable.
// Other errors stay as they are.
func unavailable(err error) error {
	isCause := func(cause error) bool { return errors.Is(err, cause) }
	if !slices.ContainsFunc(unavailableErrors, isCause) {
		return err
	}
	wire := &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats does not answer"}
	return fmt.Errorf("%w (%w)", wire, err)
}

func isRevisionConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// sleep pauses for d. If ctx ends first, it returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
