package advisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// frame is a frame of a snapshot.
type frame struct {
	kind    byte
	payload []byte
	state   any // what the payload describes, after it is parsed
}

// frameBatch is a number of frames that one goroutine parses.
type frameBatch struct {
	frames []frame
	err    error         // of the first frame that cannot be parsed
	parsed chan struct{} // closed when all frames are parsed, or one cannot be
}

func newFrameBatch() *frameBatch {
	const together = 128
	return &frameBatch{frames: make([]frame, 0, together), parsed: make(chan struct{})}
}

// parseFrames parses batches on all processors while they are read, and applies them in
// the order in which they were read. It returns when all goroutines have ended.
func parseFrames(read func(hand func(*frameBatch) bool) error, apply func(*frameBatch) error) error {
	workers := runtime.GOMAXPROCS(0)
	work := make(chan *frameBatch)
	ordered := make(chan *frameBatch, 2*workers)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for batch := range work {
				batch.parse()
			}
		})
	}
	var readErr error // read after ordered is closed
	wait.Go(func() {
		defer close(ordered)
		defer close(work)
		readErr = read(func(batch *frameBatch) bool {
			select {
			case ordered <- batch:
				work <- batch
				return true
			case <-stop:
				return false
			}
		})
	})
	err := applyInOrder(ordered, apply)
	close(stop)
	wait.Wait()
	if err != nil {
		return err
	}
	return readErr
}

func applyInOrder(ordered <-chan *frameBatch, apply func(*frameBatch) error) error {
	for batch := range ordered {
		<-batch.parsed
		if batch.err != nil {
			return batch.err
		}
		if err := apply(batch); err != nil {
			return err
		}
	}
	return nil
}

// parse parses the frames up to the first that cannot be.
func (b *frameBatch) parse() {
	defer close(b.parsed)
	for i := range b.frames {
		f := &b.frames[i]
		if err := f.parse(); err != nil {
			b.err = fmt.Errorf("frame %q: %w", f.kind, err)
			return
		}
	}
}

// parse sets the state of a frame from its payload.
func (f *frame) parse() error {
	switch f.kind {
	case frameHead:
		f.state = new(headState)
	case frameNode:
		f.state = new(nodeState)
	case frameModel:
		f.state = new(modelState)
	case frameTally:
		f.state = new(tallyState)
	case frameJob:
		f.state = new(jobState)
	case framePast:
		p, err := readPast(f.payload)
		f.state = p
		return err
	default:
		return errors.New("of no known kind")
	}
	err := json.Unmarshal(f.payload, f.state)
	f.payload = nil
	return err
}
