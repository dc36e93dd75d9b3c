// Package digits is a real training job to try Courier with: mini-batch
// stochastic gradient descent with momentum, on the 1,797 handwritten digits
// of the UCI repository, of a perceptron with one hidden layer (mlp) or a
// small convolutional network (cnn). It needs nothing but its embedded data.
//
// Run is the whole of it: it takes a command line, and writes one line per
// epoch, by default the JSON that Courier's runner understands:
//
//	{"epoch":1,"seconds":0.25,"loss":1.9,"accuracy":0.71,"batch_size":32,"samples":28800,"validation_samples":597}
//
// seconds is the epoch with its validation, by the monotonic clock; loss is
// the mean over the epoch's images while learning from them; accuracy is the
// share of 597 held-out images that are recognised; samples counts the images
// learned from, distorted copies included.
//
// Nothing in it waits or burns time on purpose. What a study of batch sizes
// finds here is there for the usual reasons:
//
//   - A step moves every parameter, however few images it looked at: small
//     batches make an epoch longer.
//   - --cpus goroutines share each batch and meet twice in it: large batches
//     gain from CPUs, small ones mostly wait and pass parameters around.
//   - Neighbours take CPUs away, and one late worker holds up all.
//   - The size of a step is not scaled with the batch, so the few steps of a
//     large batch leave the network half-way after the default ten epochs.
//
// Images are distorted anew in every epoch, by the worker that learns from
// them. All random choices follow from --seed: with the same flags, --cpus
// included, loss and accuracy repeat exactly. Another number of CPUs adds the
// gradients up in another order, so that their last bits differ.
//
// Between epochs the batch size can change: before each one Run reads the file
// of --control, where `courier run --adapt control` writes what is advised. The
// size of a step and the momentum stay, so that the epochs from there on are
// those of a training that began with that batch size.
//
// Run may be called from many goroutines at once; the runs share only the CPUs.
package digits
