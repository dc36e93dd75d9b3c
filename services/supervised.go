package services

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
)

// Supervised is called by a process that a Child runs. It returns a context that ends
// when stdin closes: the parent asks for that, or has died. Each line on stdin is
// passed to input, by one goroutine, which ends with stdin.
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

// Announce tells the Child that runs this process where it serves HTTP.
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
