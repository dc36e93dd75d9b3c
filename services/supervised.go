package services

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
)

// Supervised is called by a process that a Child runs. It returns a context that ends when stdin
// closes, because the parent stops the process or has ended itself.
func Supervised(parent context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin)
	}()
	return ctx
}

// Announce prints the HTTP address of this process for the Child that runs it.
func Announce(stdout io.Writer, address net.Addr) error {
	line, err := json.Marshal(announcement{HTTPAddress: address.String()})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s\n", line); err != nil {
		return fmt.Errorf("announce the address %s: %w", address, err)
	}
	return nil
}
