package digits

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// trainer fits one network by stochastic gradient descent with momentum.
//
// In an epoch the workers run in step; two barriers per batch hold them
// together:
//
//	worker 0   gradient of its share ┐         ┌ step of its parameters ┐
//	worker 1   gradient of its share ┼ barrier ┼ step of its parameters ┼ barrier → next batch
//	   …       gradient of its share ┘         └ step of its parameters ┘
//
// Between the barriers nobody writes what another reads: first all read the
// parameters and write a gradient of their own, then all read every gradient
// and write a part of the parameters of their own.
type trainer struct {
	options           options
	network           *network
	training, heldOut imageSet

	params   []float32 // what the networks reckon with: exact, rounded
	exact    []float64 // a step moves a parameter by a millionth: single precision would lose some
	velocity []float64
	order    []uint32 // copies of images in the order of this epoch: copy · images + image
	shuffler *rand.Rand
	workers  []*worker
	barrier  *barrier
	stopped  bool // written by worker 0 before the first barrier, read after it
}

// result is what one epoch came to.
type result struct {
	epoch    int
	duration time.Duration // validation included
	loss     float64       // mean over the epoch's images, while learning
	accuracy float64       // share of the held-out images recognised, 0 to 1
	images   int           // learned from, augmented copies included
	heldOut  int           // that the accuracy is of
}

func newTrainer(o options, training, heldOut imageSet) *trainer {
	n := newPerceptron()
	if o.network == cnn {
		n = newConvolutional()
	}
	t := &trainer{
		options: o, network: n, training: training, heldOut: heldOut,
		params:   make([]float32, n.parameters()),
		exact:    make([]float64, n.parameters()),
		velocity: make([]float64, n.parameters()),
		order:    make([]uint32, training.len()*(o.augment+1)),
		shuffler: rand.New(rand.NewPCG(o.seed, 0)),
		barrier:  newBarrier(o.cpus),
	}
	n.initialise(t.params, t.shuffler)
	for k, v := range t.params {
		t.exact[k] = float64(v)
	}
	for i := range t.order {
		t.order[i] = uint32(i)
	}
	t.hire()
	return t
}

// hire gives the trainer its workers, with room for their shares of a batch.
func (t *trainer) hire() {
	t.workers = t.workers[:0]
	for i := range t.options.cpus {
		t.workers = append(t.workers, newWorker(t, i))
	}
}

// epoch learns once from every image and its copies, then tries the held-out
// ones. It returns ctx's error as soon as the batch in hand is done, and
// another error if the loss is no longer a number.
func (t *trainer) epoch(ctx context.Context, number int) (result, error) {
	start := time.Now()
	t.shuffler.Shuffle(len(t.order), func(i, j int) {
		t.order[i], t.order[j] = t.order[j], t.order[i]
	})
	t.stopped = false
	var all sync.WaitGroup
	for _, w := range t.workers {
		all.Go(func() { w.epoch(ctx, number) })
	}
	all.Wait()
	if t.stopped {
		return result{}, ctx.Err()
	}
	r := result{epoch: number, images: len(t.order), heldOut: t.heldOut.len()}
	correct := 0
	for _, w := range t.workers {
		r.loss += w.loss / float64(len(t.order))
		correct += w.correct
	}
	r.accuracy = float64(correct) / float64(t.heldOut.len())
	r.duration = time.Since(start)
	if math.IsNaN(r.loss) || math.IsInf(r.loss, 0) {
		return result{}, fmt.Errorf("epoch %d: the loss is no longer finite: use a smaller"+
			" --learning-rate than %g",
			number, t.options.learningRate)
	}
	return r, nil
}

// share returns the part of count things that party i of parties takes.
func share(count, i, parties int) (first, last int) {
	return count * i / parties, count * (i + 1) / parties
}
