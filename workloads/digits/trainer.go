package digits

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// trainer fits a perceptron by stochastic gradient descent with momentum.
//
// In an epoch the workers run in lockstep, with two barriers per batch:
//
//	worker 0   gradient of its share ┐         ┌ step of its parameters ┐
//	worker 1   gradient of its share ┼ barrier ┼ step of its parameters ┼ barrier → next batch
//	   …       gradient of its share ┘         └ step of its parameters ┘
//
// Between two barriers no worker writes data that another reads. First each worker reads the
// parameters and writes its own gradient; then each reads all gradients and writes its own part of
// the parameters.
type trainer struct {
	options           options
	training, heldOut imageSet

	params   []float32 // exact in single precision, used by the perceptron
	exact    []float64 // A step may change a parameter by a millionth, too little for single precision.
	velocity []float64
	order    []uint32 // order of the images in this epoch: copy · images + image
	shuffler *rand.Rand
	workers  []*worker
	barrier  *barrier
	stopped  bool // written by worker 0 before the first barrier, read after it
}

// epochLine is the line of one epoch.
type epochLine struct {
	Epoch     int     `json:"epoch"`
	Seconds   float64 `json:"seconds"` // validation included
	Loss      float64 `json:"loss"`    // mean over the training images of the epoch
	Accuracy  float64 `json:"accuracy"`
	BatchSize int     `json:"batch_size"`
	CPUs      int     `json:"cpus"`
	Samples   int     `json:"samples"` // with distorted copies
	HeldOut   int     `json:"validation_samples"`
}

func newTrainer(o options, training, heldOut imageSet) *trainer {
	t := &trainer{
		options:  o,
		training: training,
		heldOut:  heldOut,
		params:   make([]float32, parameterCount),
		exact:    make([]float64, parameterCount),
		velocity: make([]float64, parameterCount),
		order:    make([]uint32, training.len()*(o.augment+1)),
		shuffler: rand.New(rand.NewPCG(o.seed, 0)),
		barrier:  newBarrier(o.cpus),
	}
	hidden.initialise(t.params, t.shuffler)
	output.initialise(t.params[hidden.parameters():], t.shuffler)
	for k, v := range t.params {
		t.exact[k] = float64(v)
	}
	for i := range t.order {
		t.order[i] = uint32(i)
	}
	t.addWorkers()
	return t
}

// addWorkers creates the workers, with space for their shares of a batch.
func (t *trainer) addWorkers() {
	t.workers = t.workers[:0]
	for i := range t.options.cpus {
		t.workers = append(t.workers, newWorker(t, i))
	}
}

// epoch trains once on every image and its copies, and then validates on the held-out images. It
// returns the error of ctx after the current batch, and another error if the loss is not finite.
func (t *trainer) epoch(ctx context.Context, number int) (epochLine, error) {
	start := time.Now()
	t.shuffler.Shuffle(len(t.order), func(i, j int) {
		t.order[i], t.order[j] = t.order[j], t.order[i]
	})
	t.stopped = false
	t.barrier.adjust()
	var all sync.WaitGroup
	for _, w := range t.workers {
		all.Go(func() { w.epoch(ctx, number) })
	}
	all.Wait()
	if t.stopped {
		return epochLine{}, ctx.Err()
	}
	r := epochLine{
		Epoch:     number,
		BatchSize: t.options.batchSize,
		CPUs:      t.options.cpus,
		Samples:   len(t.order),
		HeldOut:   t.heldOut.len(),
	}
	correct := 0
	for _, w := range t.workers {
		r.Loss += w.loss / float64(len(t.order))
		correct += w.correct
	}
	r.Accuracy = float64(correct) / float64(t.heldOut.len())
	r.Seconds = time.Since(start).Seconds()
	if math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0) {
		return epochLine{}, fmt.Errorf("epoch %d: the loss is not finite: use a smaller"+
			" --learning-rate than %g",
			number, t.options.learningRate)
	}
	return r, nil
}
