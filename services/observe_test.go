package services_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"courier/services"
)

// A request that runs when the service stops is answered, and its context stays valid.
func TestServeHTTP_FinishesRunningRequests(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	began, refusing := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		stop()
		<-refusing
		fmt.Fprintf(w, "%v", r.Context().Err())
	})
	ended := make(chan error, 1)
	go func() { ended <- services.ServeHTTP(ctx, l, handler) }()
	go func() {
		<-began
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				close(refusing)
				return
			}
			_ = c.Close() // The connection only shows that the server listens.
		}
	}()
	answer, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "<nil>" {
		t.Errorf("the running request was answered %q, %v, want a valid context", body, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A port of the previous process that another program has taken is named, since clients may still use it.
func TestPort_NamesATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := services.Port{Flag: "--http-port", Last: taken.Addr().(*net.TCPAddr).Port}
	l, note, err := p.Listen(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if want := fmt.Sprintf("port %d is in use, using another (--http-port)", p.Last); note != want {
		t.Errorf("note %q, want %q", note, want)
	}
	if port, _, err := p.Choose(t.Context(), "127.0.0.1"); port != 0 || err != nil {
		t.Errorf("Choose = %d, %v, want 0: another program could take a free port", port, err)
	}
}
