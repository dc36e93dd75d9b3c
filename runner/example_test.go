package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"courier/runner"
	"courier/schemas"
)

// A training script that prints a JSON object per epoch runs without a server. Its events stay in
// the spool directory.
func ExampleRun() {
	spoolDir, err := os.MkdirTemp("", "spool")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(spoolDir) }() // clean up

	result, err := runner.Run(context.Background(), runner.Options{
		Request: schemas.JobRequest{
			Model:      "digits-mlp",
			CPUs:       schemas.CPUs{2},
			BatchSizes: []int{32, 64},
			Epochs:     2,
		},
		Command: []string{
			"sh",
			"-c",
			`echo '{"epoch":1,"seconds":2.5,"accuracy":0.91}'
echo '{"epoch":2,"seconds":2.4,"accuracy":0.93}'`,
		},
		Stdout:   os.Stdout,
		SpoolDir: spoolDir,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range result.Epochs {
		fmt.Printf("epoch %d of %d took %.1f s, accuracy %.2f, batch size %d\n",
			e.Epoch, e.Epochs, e.DurationSeconds, *e.Accuracy, e.BatchSize)
	}
	fmt.Println("exit status", result.ExitCode, "events spooled", result.Spooled)
	// Output:
	// {"epoch":1,"seconds":2.5,"accuracy":0.91}
	// {"epoch":2,"seconds":2.4,"accuracy":0.93}
	// epoch 1 of 2 took 2.5 s, accuracy 0.91, batch size 32
	// epoch 2 of 2 took 2.4 s, accuracy 0.93, batch size 32
	// exit status 0 events spooled 4
}
