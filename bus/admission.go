package bus

import (
	"context"

	"courier/schemas"
)

// Ticket returns the cluster's last admission and the revision of its key. Before the first
// admission it returns an empty ticket and 0.
func (b *Bus) Ticket(ctx context.Context) (schemas.Ticket, uint64, error) {
	var t schemas.Ticket
	revision, err := b.readKey(ctx, schemas.BucketAdmission, schemas.AdmissionPool, &t)
	return t, revision, err
}

// TakeTicket stores the cluster's last admission if the key still has the given revision
// (0: it does not exist). Otherwise the error matches schemas.ErrConflict.
func (b *Bus) TakeTicket(ctx context.Context, t schemas.Ticket, revision uint64) error {
	_, err := b.writeKey(ctx, schemas.BucketAdmission, schemas.AdmissionPool, t, revision)
	return err
}
