package digits

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
)

// Run trains a perceptron with the flags in args (without the name of the program), and writes a line
// to stdout at the end of each epoch. With -h or --help it writes the usage instead.
//
// An error in the flags is returned before the training. When ctx ends, Run returns its error
// within one batch, after the lines of all finished epochs. A failed write to stdout ends the
// training.
func Run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return writeUsage(stdout)
	}
	if err != nil {
		return err
	}
	training, heldOut, err := loadImages()
	if err != nil {
		return err
	}
	t := newTrainer(o, training, heldOut)
	for number := 1; number <= o.epochs; number++ {
		if o.control != "" {
			t.applyControl(o.control, number)
		}
		r, err := t.epoch(ctx, number)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(stdout).Encode(r); err != nil {
			return fmt.Errorf("write epoch %d: %w", number, err)
		}
	}
	return nil
}

func writeUsage(w io.Writer) error {
	_, err := fmt.Fprint(w, "Usage: digits [flags]\n\n"+
		"Trains a small network on handwritten digits and writes a line per epoch.\n\n")
	var o options
	f := o.flags()
	f.SetOutput(w)
	f.PrintDefaults()
	return err
}
