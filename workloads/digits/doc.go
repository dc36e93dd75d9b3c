// Package digits is a real training job to try Courier with: mini-batch stochastic gradient descent
// with momentum on the 1,797 handwritten digits of the UCI repository. The model is a perceptron
// with one hidden layer. The data is embedded.
//
// Run takes a command line and writes a line per epoch, in JSON that Courier's runner understands:
//
//	{"epoch":1,"seconds":0.25,"loss":1.9,"accuracy":0.71,
//	"batch_size":32,"cpus":1,"samples":28800,"validation_samples":597}
//
// seconds is the duration of the epoch including validation; loss is the mean loss of its training
// images; accuracy is the ratio of the 597 held-out images that are recognized; samples is the
// number of training images including distorted copies.
//
// The job does not wait or waste time artificially. Batch sizes behave as in larger jobs:
//
//   - A step updates every parameter, whatever its batch size: small batches make an epoch longer.
//   - --cpus goroutines share each batch and synchronise twice per batch: more CPUs help large
//     batches, but small batches mostly wait and exchange parameters.
//   - Neighbours take CPU time, and one late worker delays all others.
//   - The learning rate does not depend on the batch size, so that after ten epochs a network with
//     large batches has made few steps and is less accurate.
//
// The worker that trains on an image distorts it, differently in every epoch. All random numbers
// follow from --seed: with the same flags, including --cpus, loss and accuracy are identical.
// Another number of CPUs adds the gradients in another order, which changes the last bits.
//
// Batch size and number of CPUs can change between epochs: before each epoch, Run reads the file of
// --control, to which `courier run --adapt control` writes the advised batch size, and `courier run
// --resize control` the number of CPUs. Learning rate and momentum do not change, so that the
// following epochs take as long as in a job that began with these values.
//
// Run may be called concurrently.
package digits
