package services

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
)

// Supervised is called by a process that a Child runs. It returns a context that ends when stdin
// closes, because the parent stops the process or has ended itself. One goroutine passes each line
// on stdin to input.
func Supervised(parent context.Context, stdin io.Reader, input func(line string)) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(stdin); lines.Scan(); {
			input(lines.Text())
		}
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
