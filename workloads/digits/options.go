package digits

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Limits of the flags. Those of the batch size are from the ICPE 2021 paper; the others keep a
// typing mistake from filling memory.
const (
	smallestBatch = 4
	largestBatch  = 128
	mostCPUs      = 256
	mostEpochs    = 100_000
	mostAugment   = 1000
)

// Defaults with which the flags matter (BENCHMARKS.md has the measurements). With this learning rate, a
// network learns the digits in ten epochs at batch size 4, but not at 128. With this number of
// copies an epoch of the perceptron takes about a quarter of a second on one CPU.
const (
	defaultLearningRate = 0.001
	defaultAugment      = 23
)

// options are the values of the flags.
type options struct {
	batchSize    int // number of images
	cpus         int // number of workers, which are goroutines
	epochs       int
	learningRate float64
	momentum     float64
	seed         uint64
	augment      int    // distorted copies of each image and epoch
	control      string // file that changes batch size and CPUs between epochs; empty: none
}

// flags sets o to the defaults and returns the flag set that changes it.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("digits", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.batchSize, "batch-size", 32, "`images` per step, 4 to 128")
	f.IntVar(&o.cpus, "cpus", 1, "`workers` that share each batch, 1 to 256")
	f.IntVar(&o.epochs, "epochs", 10, "`passes` over the training images, 1 to 100000")
	f.Float64Var(&o.learningRate, "learning-rate", defaultLearningRate,
		"`size` of a step, above 0 and at most 10; not scaled with the batch size")
	f.Float64Var(&o.momentum, "momentum", 0.9,
		"`share` of the last step that the next one keeps, 0 to below 1")
	f.Uint64Var(&o.seed, "seed", 1, "`number` that all random choices follow from")
	f.IntVar(&o.augment, "augment", defaultAugment,
		"distorted `copies` of each image per epoch, 0 to 1000, beside the image itself")
	f.StringVar(&o.control, "control", os.Getenv(controlVariable),
		"`file` that is read before each epoch: {\"batch_size\":64,\"cpus\":2,\"from_epoch\":5}"+
			" changes batch size and workers; $"+controlVariable+" names it, too")
	return f
}

// parseOptions parses the command line. The error names the flag; it is flag.ErrHelp for --help.
func parseOptions(args []string) (options, error) {
	var o options
	f := o.flags()
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	if f.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: all options are flags, see --help",
			f.Arg(0))
	}
	return o, o.validate()
}

// validate returns an error for the flags outside their limits.
func (o options) validate() error {
	return errors.Join(
		within("--batch-size", o.batchSize, smallestBatch, largestBatch),
		within("--cpus", o.cpus, 1, mostCPUs),
		within("--epochs", o.epochs, 1, mostEpochs),
		flagError(o.learningRate > 0 &&
			o.learningRate <= 10, "--learning-rate", o.learningRate, "above 0 and at most 10"),
		flagError(o.momentum >= 0 && o.momentum < 1, "--momentum", o.momentum, "0 to below 1"),
		within("--augment", o.augment, 0, mostAugment),
	)
}

func within(name string, value, least, most int) error {
	return flagError(least <= value &&
		value <= most, name, value, fmt.Sprintf("%d to %d", least, most))
}

// flagError returns an error about the value of a flag.
func flagError(holds bool, name string, value any, want string) error {
	if holds {
		return nil
	}
	return fmt.Errorf("%s %v: want %s", name, value, want)
}
