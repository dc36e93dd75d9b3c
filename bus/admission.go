package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Ticket returns the cluster's last admission and the revision of its key; an
// empty one and 0 before the first.
func (b *Bus) Ticket(ctx context.Context) (schemas.Ticket, uint64, error) {
	var t schemas.Ticket
	kv, err := b.js.KeyValue(ctx, schemas.BucketAdmission)
	if err != nil {
		return t, 0, fmt.Errorf("open bucket %s: %w", schemas.BucketAdmission, unavailable(err))
	}
	entry, err := kv.Get(ctx, schemas.AdmissionPool)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return t, 0, nil
	}
	if err != nil {
		return t, 0, fmt.Errorf("read the last admission: %w", unavailable(err))
	}
	if err := json.Unmarshal(entry.Value(), &t); err != nil {
		return t, 0, fmt.Errorf("read the last admission: %w", err)
	}
	return t, entry.Revision(), nil
}

// TakeTicket makes an admission the cluster's last if the key still has the
// given revision (0: it does not exist); schemas.ErrConflict otherwise.
func (b *Bus) TakeTicket(ctx context.Context, t schemas.Ticket, revision uint64) error {
	kv, err := b.js.KeyValue(ctx, schemas.BucketAdmission)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", schemas.BucketAdmission, unavailable(err))
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = kv.Update(ctx, schemas.AdmissionPool, data, revision)
	if taken(err) {
		return &schemas.Error{Code: schemas.CodeConflict, Message: "another job was admitted meanwhile"}
	}
	if err != nil {
		return fmt.Errorf("admit job %s: %w", t.JobID, unavailable(err))
	}
	return nil
}

// taken reports whether somebody else was first.
func taken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
