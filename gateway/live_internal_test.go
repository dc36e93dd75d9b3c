package gateway

import (
	"errors"
	"fmt"
	"testing"

	"courier/bus"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestHub_TakesABoundedNumberOfClientsOfOne(t *testing.T) {
	h := newHub(newMetrics(nil, newNodeTable()), 3)
	for range maxClientsPerKey {
		if _, err := h.join(t.Context(), "ada", &eventFilter{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.join(t.Context(), "ada", &eventFilter{}); err != errTooManyOfKey {
		t.Errorf("client %d of one user: %v, want %v", maxClientsPerKey+1, err, errTooManyOfKey)
	}
	if _, err := h.join(t.Context(), "bob", &eventFilter{}); err != nil {
		t.Errorf("first client of another user: %v, want nil", err)
	}
}

func TestHub_TakesABoundedNumberOfClients(t *testing.T) {
	h := newHub(newMetrics(nil, newNodeTable()), 3)
	first, err := h.join(t.Context(), "ada", &eventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxClients - 1 {
		if _, err := h.join(t.Context(), fmt.Sprint(i%10), &eventFilter{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.join(t.Context(), "bob", &eventFilter{}); err != errTooMany {
		t.Errorf("client %d: %v, want %v", maxClients+1, err, errTooMany)
	}
	h.leave(first)
	h.leave(first) // the second call does nothing
	if _, err := h.join(t.Context(), "bob", &eventFilter{}); err != nil {
		t.Errorf("after a client has left: %v, want nil", err)
	}
	h.close()
	if _, err := h.join(t.Context(), "bob", &eventFilter{}); err != errStopping ||
		len(h.clients) != 0 {
		t.Errorf("after close: %v with %d clients, want %v with none", err, len(h.clients),
			errStopping)
	}
}

// A client whose queue is full is removed; others are not affected.
func TestHub_RemovesASlowClient(t *testing.T) {
	h := newHub(newMetrics(nil, newNodeTable()), 1)
	slow, slowErr := h.join(t.Context(), "ada", &eventFilter{})
	quick, quickErr := h.join(t.Context(), "bob", &eventFilter{})
	changes, changesErr := h.join(t.Context(), "eve", &eventFilter{changes: true})
	if err := errors.Join(slowErr, quickErr, changesErr); err != nil {
		t.Fatal(err)
	}
	for range maxQueueEvents + 1 {
		sample := bus.Record{Subject: "node.n.sample", Event: &schemas.Sample{}}
		if err := h.send(kindSample, sample); err != nil {
			t.Fatal(err)
		}
		<-quick.queue
	}
	if slow.ctx.Err() == nil || quick.ctx.Err() != nil || len(h.clients) != 2 {
		t.Errorf("slow client: %v, quick client: %v, want only the slow one removed",
			slow.ctx.Err(), quick.ctx.Err())
	}
	if n := len(changes.queue); n != 1 || changes.ctx.Err() != nil {
		t.Errorf("%d changes wait for a slow client, %v, want one for all events", n, changes.ctx.Err())
	}
	if n := testutil.ToFloat64(h.metrics.slow); n != 1 {
		t.Errorf("%g slow clients counted, want 1", n)
	}
}
