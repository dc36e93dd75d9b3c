package digits

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// Run trains a network as args ask (without the program's name), and writes
// one line to stdout per epoch, at its end. An argument -h or --help writes
// the usage instead, and is no error.
//
// An error in the arguments names the flag, before anything is trained. When
// ctx ends Run returns its error within one batch; lines of finished epochs
// have been written by then. A stdout that refuses a line ends the training.
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
			t.obey(o.control, number)
		}
		r, err := t.epoch(ctx, number)
		if err != nil {
			return err
		}
		if err := report(stdout, t.options, r); err != nil {
			return fmt.Errorf("write epoch %d: %w", number, err)
		}
	}
	return nil
}

func writeUsage(w io.Writer) error {
	var text bytes.Buffer
	fmt.Fprint(&text, "Usage: digits [flags]\n\n"+
		"Trains a small network on handwritten digits and writes a line per epoch.\n\n")
	var o options
	f := o.flags()
	f.SetOutput(&text)
	f.PrintDefaults()
	_, err := w.Write(text.Bytes())
	return err
}
