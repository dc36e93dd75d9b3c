package gateway

import (
	"fmt"
	"testing"
)

func TestHub_TakesABoundedNumberOfClientsOfOne(t *testing.T) {
	h := newHub(newMetrics(nil), 3)
	for range maxClientsPerKey {
		if _, _, err := h.join(t.Context(), "ada", &eventFilter{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.join(t.Context(), "ada", &eventFilter{}); err != errTooManyOfKey {
		t.Errorf("client %d of one user: %v, want %v", maxClientsPerKey+1, err, errTooManyOfKey)
	}
	if _, _, err := h.join(t.Context(), "bob", &eventFilter{}); err != nil {
		t.Errorf("first client of another user: %v, want nil", err)
	}
}

func TestHub_TakesABoundedNumberOfClients(t *testing.T) {
	h := newHub(newMetrics(nil), 3)
	first, _, err := h.join(t.Context(), "ada", &eventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxClients - 1 {
		if _, _, err := h.join(t.Context(), fmt.Sprint(i%10), &eventFilter{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.join(t.Context(), "bob", &eventFilter{}); err != errTooMany {
		t.Errorf("client %d: %v, want %v", maxClients+1, err, errTooMany)
	}
	h.leave(first)
	h.leave(first) // the second call does nothing
	if _, _, err := h.join(t.Context(), "bob", &eventFilter{}); err != nil {
		t.Errorf("after a client has left: %v, want nil", err)
	}
	h.close()
	if _, _, err := h.join(t.Context(), "bob", &eventFilter{}); err != errStopping ||
		len(h.clients) != 0 {
		t.Errorf("after close: %v with %d clients, want %v with none", err, len(h.clients),
			errStopping)
	}
}
