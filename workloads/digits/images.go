package digits

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

// Shape of the data; see data/README.md.
const (
	imageSide  = 8
	pixelCount = imageSide * imageSide
	classCount = 10
	imageCount = 1797
	recordSize = pixelCount + 1
	pixelMax   = 16

	// trainingCount is the number of training images; the other 597 are held out. The source is
	// ordered by writer, so the held-out images are mostly of writers without training images. The
	// split is the same for every seed.
	trainingCount = 1200
)

//go:embed data/digits.bin.gz
var packed []byte

// imageSet is a list of images with their labels.
type imageSet struct {
	pixels []float32 // pixelCount per image, row by row, 0 (paper) to 1 (ink)
	labels []uint8   // the digit, 0 to 9
}

func (s imageSet) len() int { return len(s.labels) }

// image returns the pixels of image i.
func (s imageSet) image(i int) []float32 { return s.pixels[i*pixelCount : (i+1)*pixelCount] }

// slice returns the images first to last-1.
func (s imageSet) slice(first, last int) imageSet {
	return imageSet{s.pixels[first*pixelCount : last*pixelCount], s.labels[first:last]}
}

// loadImages returns the training images and the held-out images.
func loadImages() (training, heldOut imageSet, err error) {
	all, err := readImages(bytes.NewReader(packed))
	if err != nil {
		return imageSet{}, imageSet{}, fmt.Errorf("read the digits: %w", err)
	}
	return all.slice(0, trainingCount), all.slice(trainingCount, imageCount), nil
}

// readImages reads the format that data/README.md describes.
func readImages(r io.Reader) (imageSet, error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return imageSet{}, err
	}
	records, err := io.ReadAll(io.LimitReader(unpacked, imageCount*recordSize+1))
	if err != nil {
		return imageSet{}, err
	}
	if len(records) != imageCount*recordSize {
		return imageSet{}, fmt.Errorf("got %d bytes or more, want %d", len(records),
			imageCount*recordSize)
	}
	set := imageSet{make([]float32, 0, imageCount*pixelCount), make([]uint8, 0, imageCount)}
	for i := range imageCount {
		record := records[i*recordSize : (i+1)*recordSize]
		for _, p := range record[:pixelCount] {
			if p > pixelMax {
				return imageSet{}, fmt.Errorf("image %d: pixel %d, want 0 to %d", i, p, pixelMax)
			}
			set.pixels = append(set.pixels, float32(p)/pixelMax)
		}
		label := record[pixelCount]
		if label >= classCount {
			return imageSet{}, fmt.Errorf("image %d: digit %d, want 0 to 9", i, label)
		}
		set.labels = append(set.labels, label)
	}
	return set, nil
}
