package digits

import (
	"context"
	"math/rand/v2"
)

// validationImages is how many held-out images go through a network at once.
// It is the same for every batch size: validation costs them the same.
const validationImages = 64

// worker is one of the CPUs' share of a trainer: its own copies of images,
// values and gradient.
type worker struct {
	trainer  *trainer
	index    int
	gradient []float32
	space    *space
	labels   []uint8
	source   *rand.PCG
	random   *rand.Rand

	loss    float64 // summed over its images of this epoch
	correct int     // of its held-out images
}

func newWorker(t *trainer, index int) *worker {
	largest := (t.options.batchSize + t.options.cpus - 1) / t.options.cpus
	source := rand.NewPCG(0, 0)
	return &worker{
		trainer: t, index: index,
		gradient: make([]float32, t.network.parameters()),
		space:    newSpace(t.network, max(largest, validationImages)),
		labels:   make([]uint8, largest),
		source:   source, random: rand.New(source),
	}
}

// epoch does this worker's share of every batch, then of the validation.
func (w *worker) epoch(ctx context.Context, number int) {
	t := w.trainer
	w.loss, w.correct = 0, 0
	for first := 0; first < len(t.order); first += t.options.batchSize {
		if w.index == 0 && ctx.Err() != nil {
			t.stopped = true
		}
		batch := t.order[first:min(first+t.options.batchSize, len(t.order))]
		w.accumulate(batch, number)
		t.barrier.wait()
		if t.stopped {
			return
		}
		w.step()
		t.barrier.wait()
	}
	w.validate()
}

// accumulate adds to gradient the derivatives of the batch's mean loss that
// come from this worker's share.
func (w *worker) accumulate(batch []uint32, epoch int) {
	t := w.trainer
	first, last := share(len(batch), w.index, t.options.cpus)
	images := last - first
	clear(w.gradient)
	if images == 0 {
		return
	}
	for i, place := range batch[first:last] {
		w.place(i, int(place), epoch)
	}
	scores := t.network.forward(t.params, w.space, images)
	w.loss += crossEntropy(w.space.scoreDeltas(), scores, w.labels[:images], 1/float64(len(batch)))
	t.network.backward(t.params, w.gradient, w.space, images)
}

// place puts a copy of an image into place i of the network's input: the
// image itself for the first copy, a distorted one for the others. The
// distortion depends on seed, epoch and copy alone, not on who computes it.
func (w *worker) place(i, number, epoch int) {
	t := w.trainer
	image := number % t.training.len()
	w.labels[i] = t.training.labels[image]
	out := w.space.values[0][i*pixelCount : (i+1)*pixelCount]
	if number < t.training.len() {
		copy(out, t.training.image(image))
		return
	}
	w.source.Seed(t.options.seed, uint64(epoch)<<32|uint64(number))
	distort(out, t.training.image(image), w.random)
}

// step moves this worker's part of the parameters by the sum of all workers'
// gradients, in one order for every batch. It writes nothing of another
// worker's, which would cost both a trip of the memory between their CPUs.
func (w *worker) step() {
	t := w.trainer
	first, last := share(len(t.params), w.index, t.options.cpus)
	sum := w.gradient[first:last]
	for i := range t.workers[1:] {
		other := t.workers[(w.index+1+i)%len(t.workers)]
		addOne(sum, other.gradient[first:last], 1)
	}
	descend(t.params[first:last], t.exact[first:last], t.velocity[first:last], sum,
		t.options.learningRate, t.options.momentum)
}

// descend is one step of gradient descent with momentum, in double precision;
// params are the moved exact ones, rounded. It uses the gradient up.
func descend(
	params []float32, exact, velocity []float64, gradient []float32, rate, momentum float64,
) {
	exact, velocity = exact[:len(gradient)], velocity[:len(gradient)]
	for k, g := range gradient {
		v := momentum*velocity[k] - rate*float64(g)
		velocity[k] = v
		exact[k] += v
		gradient[k] = float32(exact[k])
	}
	// The other CPUs hold copies of params. Written in one go, the memory's
	// trips between them overlap: a third of a step's time (measured).
	copy(params, gradient)
}

// validate counts this worker's share of the held-out images that the network
// recognises.
func (w *worker) validate() {
	t := w.trainer
	first, last := share(t.heldOut.len(), w.index, t.options.cpus)
	for ; first < last; first += validationImages {
		part := t.heldOut.slice(first, min(first+validationImages, last))
		copy(w.space.values[0], part.pixels)
		w.correct += countCorrect(t.network.forward(t.params, w.space, part.len()), part.labels)
	}
}
