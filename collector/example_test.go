package collector_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"courier/collector"
	"courier/schemas"
)

// A training script that prints a JSON line per epoch, run without any server:
// its events wait in the spool.
func ExampleRunJob() {
	spool, err := os.MkdirTemp("", "spool")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(spool) }() // an example leaves nothing

	result, err := collector.RunJob(context.Background(), collector.JobOptions{
		Request:  schemas.JobRequest{Model: "digits-mlp", CPUs: schemas.CPUs{2}, BatchSizes: []int{32, 64}, Epochs: 2},
		Command:  []string{"sh", "-c", `echo '{"epoch":1,"seconds":2.5,"accuracy":0.91}'; echo '{"epoch":2,"seconds":2.4,"accuracy":0.93}'`},
		Stdout:   os.Stdout,
		SpoolDir: spool,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range result.Epochs {
		fmt.Printf("epoch %d of %d took %.1f s, accuracy %.2f, batch size %d\n", e.Epoch, e.Epochs, e.DurationSeconds, *e.Accuracy, e.BatchSize)
	}
	fmt.Println("exit status", result.ExitCode, "events kept", result.Spooled)
	// Output:
	// {"epoch":1,"seconds":2.5,"accuracy":0.91}
	// {"epoch":2,"seconds":2.4,"accuracy":0.93}
	// epoch 1 of 2 took 2.5 s, accuracy 0.91, batch size 32
	// epoch 2 of 2 took 2.4 s, accuracy 0.93, batch size 32
	// exit status 0 events kept 4
}
