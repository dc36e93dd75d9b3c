// Command digits trains a small network on handwritten digits; see package digits. It is the same
// program as `courier workload digits`, without the rest of Courier:
//
//	go run ./workloads/digits/cmd/digits --batch-size 16 --format text
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"courier/workloads/digits"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := digits.Run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}
