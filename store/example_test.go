package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/store"
)

// An invalid address fails at once, and the error does not contain the password.
func ExampleOpen() {
	_, err := store.Open(context.Background(),
		store.Options{URL: "clickhouse://courier:secret@db:90x0/courier"}, slog.Default(), nil)
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// open database clickhouse://db:90x0/courier:
	// not an address of ClickHouse:
	// host, port or settings cannot be read (write special characters of user and password as %xx)
}

// A store writes the log until its context ends.
func ExampleStore_Run() {
	ctx, log := context.Background(), slog.Default()
	b, err := bus.Connect(ctx, bus.Options{URL: "nats://127.0.0.1:4222"}, log, nil)
	if err != nil {
		log.Error("connect", "error", err)
		return
	}
	o := store.Options{URL: "clickhouse://courier@127.0.0.1:9000/courier"}
	d, err := store.Open(ctx, o, log, nil)
	if err != nil {
		log.Error("open", "error", err)
		return
	}
	defer d.Close()
	if err := store.New(b, d, log, nil, o).Run(ctx); err != nil {
		log.Error("store", "error", err)
	}
}

// The history returns the epochs of the last day as they were published.
func ExampleHistory_Events() {
	d, err := store.Open(context.Background(),
		store.Options{URL: "clickhouse://courier@127.0.0.1:9000/courier"}, slog.Default(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	err = store.NewHistory(d).
		Events(context.Background(), time.Now().Add(-24*time.Hour), func(e schemas.Event) error {
			if epoch, ok := e.(*schemas.Epoch); ok {
				fmt.Println(epoch.JobID, epoch.Epoch, epoch.DurationSeconds)
			}
			return nil
		})
	if err != nil {
		fmt.Println(err)
	}
}
