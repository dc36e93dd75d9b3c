//go:build linux

package digits

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files of a distributed training: checkpoint and mini-batches.

// readNumbers and writeNumbers access numbers of a checkpoint: all parameters, then all velocities.
func readNumbers(file *os.File, first int, numbers []float64) error {
	return binary.Read(io.NewSectionReader(file, int64(8*first), int64(8*len(numbers))),
		binary.LittleEndian, numbers)
}

func writeNumbers(file *os.File, first int, numbers []float64) error {
	return binary.Write(io.NewOffsetWriter(file, int64(8*first)), binary.LittleEndian, numbers)
}

// writeCheckpoint writes the parameters of an untrained network.
func writeCheckpoint(path string) error {
	n := newClusterNetwork()
	params := make([]float32, n.parameters())
	n.initialise(params, rand.New(rand.NewPCG(1, 0)))
	exact := make([]float64, 2*len(params)) // the velocities are 0
	for k, v := range params {
		exact[k] = float64(v)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeNumbers(file, 0, exact), file.Close())
}

// Layout of a file of mini-batches: each begins at a block, because reads pass the page cache.
const (
	blockBytes   = 4096
	fileBatches  = 64
	sampleFloats = pixelCount + 1 // and the label
)

func batchBytes(samples int) int {
	return (4*sampleFloats*samples + blockBytes - 1) / blockBytes * blockBytes
}

// writeBatches writes distorted training images.
func writeBatches(path string, samples int) error {
	training, _, err := loadImages()
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(2, 0))
	file := make([]byte, 0, fileBatches*batchBytes(samples))
	pixels := make([]float32, pixelCount)
	for i := range fileBatches {
		for range samples {
			image := random.IntN(training.len())
			distort(pixels, training.image(image), random)
			for _, v := range append(pixels, float32(training.labels[image])) {
				file, err = binary.Append(file, binary.LittleEndian, v)
				if err != nil {
					return err
				}
			}
		}
		file = append(file, make([]byte, (i+1)*batchBytes(samples)-len(file))...)
	}
	return os.WriteFile(path, file, 0o600)
}

// batchFile reads mini-batches from the disk, not from the page cache.
type batchFile struct {
	file   *os.File
	buffer []byte // aligned to a page
	values []float32
}

func openBatches(path string, samples int) (*batchFile, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil, err
	}
	buffer, err := unix.Mmap(-1, 0, batchBytes(samples), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return &batchFile{file, buffer, make([]float32, sampleFloats*samples)}, nil
}

// read sets pixels and labels to a mini-batch.
func (f *batchFile) read(number int, pixels []float32, labels []uint8) error {
	at := int64(number%fileBatches) * int64(len(f.buffer))
	if _, err := f.file.ReadAt(f.buffer, at); err != nil {
		return err
	}
	if _, err := binary.Decode(f.buffer, binary.LittleEndian, f.values); err != nil {
		return err
	}
	for i := range labels {
		sample := f.values[i*sampleFloats : (i+1)*sampleFloats]
		copy(pixels[i*pixelCount:], sample[:pixelCount])
		labels[i] = uint8(sample[pixelCount])
	}
	return nil
}

// readersOfJob is how many reads the other job has under way.
const readersOfJob = 20

// readAll reads the whole file again and again, as another training on the same disk does.
func (r *clusterRole) readAll() error {
	if err := ready(func() {}); err != nil {
		return err
	}
	failed := make(chan error)
	for i := range readersOfJob {
		go func() {
			const samples = 1000 // a read of 256 kB
			f, err := openBatches(r.Data, samples)
			for at := int64(i); err == nil; at++ {
				size := fileBatches * int64(batchBytes(r.Samples)) / int64(len(f.buffer))
				_, err = f.file.ReadAt(f.buffer, at%max(1, size)*int64(len(f.buffer)))
			}
			failed <- err
		}()
	}
	return <-failed
}
