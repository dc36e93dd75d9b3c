package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Ticket returns the cluster's last admission and the revision of its key. Before the first
// admission it returns an empty ticket and 0.
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

// TakeTicket stores the cluster's last admission if the key still has the given revision
// (0: it does not exist). Otherwise the error matches schemas.ErrConflict.
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
	if isRevisionConflict(err) {
		return &schemas.Error{Code: schemas.CodeConflict, Message: "another job was admitted first"}
	}
	if err != nil {
		return fmt.Errorf("admit job %s: %w", t.JobID, unavailable(err))
	}
	return nil
}

// isRevisionConflict reports whether a compare-and-set lost against another writer.
func isRevisionConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
