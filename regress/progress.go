package regress

import "sync"

// progress counts trees and tells one listener, one call at a time.
type progress struct {
	mutex         sync.Mutex
	tell          func(done, planned int)
	done, planned int
}

func newProgress(tell func(done, planned int), planned int) *progress {
	return &progress{tell: tell, planned: planned}
}

func (p *progress) add(trees int) {
	if p.tell == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += trees
	p.tell(p.done, p.planned)
}

// reach counts trees that were planned and turned out not to be needed.
func (p *progress) reach(done int) {
	p.mutex.Lock()
	missing := done - p.done
	p.mutex.Unlock()
	if missing > 0 {
		p.add(missing)
	}
}
