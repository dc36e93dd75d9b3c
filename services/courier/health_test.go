package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func TestHealth_IsTheAnswerOfTheService(t *testing.T) {
	slow := make(chan struct{})
	defer close(slow)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.HandleFunc("GET /waiting", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the log is not read yet", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /slow", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-slow:
		case <-r.Context().Done():
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	gone := httptest.NewServer(mux)
	gone.Close()
	for _, c := range []struct {
		url     string
		timeout string
		fail    string // part of the error; empty: none
	}{
		{s.URL + "/ready", "5m", ""},
		{s.URL + "/waiting", "5m", "503 Service Unavailable: the log is not read yet"},
		{s.URL + "/nothing", "5m", "404 Not Found"},
		{s.URL + "/slow", "50ms", "deadline exceeded"},
		{gone.URL + "/ready", "5m", "refused"},
		{"127.0.0.1:80", "5m", "check health"},
	} {
		args := []string{"health", c.url, "--timeout", c.timeout}
		err := run(context.Background(), args, os.Getenv, io.Discard, io.Discard)
		switch {
		case c.fail == "" && err != nil:
			t.Errorf("health %s: %v, want none", c.url, err)
		case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
			t.Errorf("health %s: %v, want an error with %q", c.url, err, c.fail)
		}
	}
}
