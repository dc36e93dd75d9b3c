package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"courier/bus"
)

type healthCommand struct {
	URL     string        `arg:"" help:"URL to check, such as http://127.0.0.1:9100/readyz."`
	CA      string        `name:"ca" help:"File with the certificates (PEM) of the authorities of an https:// server." env:"COURIER_CA"`
	Timeout time.Duration `help:"Maximum time for the answer." default:"2s" env:"COURIER_TIMEOUT"`
}

// Run sends one request, because a container image may have no shell for a health check.
func (c *healthCommand) Run(w *environment) error {
	ctx, cancel := context.WithTimeout(w.ctx, c.Timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	client := http.Client{}
	if c.CA != "" {
		authorities, err := bus.Authorities(c.CA)
		if err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
	}
	answer, err := client.Do(q)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // Nothing is written.
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.URL, err)
	}
	text := strings.TrimSpace(string(body))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not healthy: %s: %s", c.URL, answer.Status, text)
	}
	fmt.Fprintln(w.stdout, text)
	return nil
}
