package digits_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"courier/workloads/digits"
)

// Two short epochs and their output.
func ExampleRun() {
	var out bytes.Buffer
	args := []string{
		"--network", "mlp", "--batch-size", "8", "--epochs", "2", "--augment", "3",
		"--learning-rate", "0.01",
	}
	if err := digits.Run(context.Background(), args, &out); err != nil {
		fmt.Println(err)
		return
	}
	for lines := json.NewDecoder(&out); lines.More(); {
		var epoch struct {
			Epoch    int     `json:"epoch"`
			Samples  int     `json:"samples"`
			Accuracy float64 `json:"accuracy"`
		}
		if err := lines.Decode(&epoch); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("epoch %d learned from %d images, better than three of four right: %t\n",
			epoch.Epoch, epoch.Samples, epoch.Accuracy > 0.75)
	}
	// Output:
	// epoch 1 learned from 4800 images, better than three of four right: true
	// epoch 2 learned from 4800 images, better than three of four right: true
}
