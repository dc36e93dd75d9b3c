//go:build linux

package digits

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A distributed training: worker processes read mini-batches from a file, compute gradients, and
// send them to parameter servers, which hold a part of the parameters each. All workers do each step
// together. The processes are this test program, started again with a role.

// roleVariable is the environment variable with the role of a process, as JSON.
const roleVariable = "DIGITS_CLUSTER_ROLE"

// Kinds of processes.
const (
	workerKind = "worker"
	serverKind = "server"
	readerKind = "reader" // another job, which reads from the same disk
)

// clusterRole is what a process of a training does.
type clusterRole struct {
	Kind       string
	Index      int // among the processes of this kind
	Workers    int
	Servers    []string // addresses, one per shard of the parameters
	Samples    int      // of a worker in a step
	Data       string   // file with mini-batches
	Checkpoint string   // file with parameters and velocities
}

// stepLine is what a worker prints after each step.
type stepLine struct {
	Worker      int
	BusySeconds float64 // reading and computing, without the exchange
	Loss        float64 // mean of its images
}

// init runs the role of a process of a training in place of the tests. Roles end with their input, so
// that none outlives the test.
func init() {
	text := os.Getenv(roleVariable)
	if text == "" {
		return
	}
	var r clusterRole
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		switch r.Kind {
		case workerKind:
			err = r.work()
		case serverKind:
			err = r.serve()
		case readerKind:
			err = r.readAll()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, r.Kind, r.Index, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// clusterHidden is the size of the hidden layer: it makes the parameters large enough for a network
// with the speed of a disk.
const clusterHidden = 512

func newClusterNetwork() *network {
	return newNetwork(
		dense{pixelCount, clusterHidden},
		rectifier{clusterHidden},
		dense{clusterHidden, classCount},
	)
}

// Step of the servers' gradient descent.
const (
	clusterRate     = 0.02
	clusterMomentum = 0.9
)

// ready tells the test that a process can take part, and waits for its go. Then the process ends with
// its input.
func ready(atEnd func()) error {
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		atEnd()
		os.Exit(0)
	}()
	return nil
}

// clusterWorker is the state of a worker.
type clusterWorker struct {
	role    *clusterRole
	network *network
	params  []float32
	slope   []float32 // gradient
	space   *space
	labels  []uint8
	shards  []*shardLink
	batches *batchFile
}

// shardLink is a worker's connection to the server of a shard.
type shardLink struct {
	conn        net.Conn
	first, last int
	buffer      []byte
}

func (r *clusterRole) work() error {
	n := newClusterNetwork()
	w := &clusterWorker{
		role: r, network: n,
		params: make([]float32, n.parameters()),
		slope:  make([]float32, n.parameters()),
		space:  newSpace(n, r.Samples),
		labels: make([]uint8, r.Samples),
	}
	var err error
	if w.batches, err = openBatches(r.Data, r.Samples); err != nil {
		return err
	}
	for i, address := range r.Servers {
		first, last := share(len(w.params), i, len(r.Servers))
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		w.shards = append(w.shards, &shardLink{conn, first, last, make([]byte, 4*(last-first))})
	}
	if err := ready(func() {}); err != nil {
		return err
	}
	return w.train()
}

// train runs steps until the process ends.
func (w *clusterWorker) train() error {
	if err := w.each(w.receive); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for step := 0; ; step++ {
		begin := time.Now()
		loss, err := w.compute(step)
		if err != nil {
			return err
		}
		busy := time.Since(begin)

		err = w.each(func(s *shardLink) error {
			if err := w.send(s); err != nil {
				return err
			}
			return w.receive(s)
		})
		if err != nil {
			return err
		}
		if err := out.Encode(stepLine{w.role.Index, busy.Seconds(), loss}); err != nil {
			return err
		}
	}
}

// compute reads a mini-batch, computes its gradient, and returns its mean loss.
func (w *clusterWorker) compute(step int) (float64, error) {
	if err := w.batches.read(step*w.role.Workers+w.role.Index, w.space.values[0], w.labels); err != nil {
		return 0, err
	}
	clear(w.slope)
	images := len(w.labels)
	scores := w.network.forward(w.params, w.space, images)
	scale := 1 / float64(images*w.role.Workers)
	loss := crossEntropy(w.space.scoreDeltas(), scores, w.labels, scale)
	w.network.backward(w.params, w.slope, w.space, images)
	return loss / float64(images), nil
}

// each calls a function for all shards at once.
func (w *clusterWorker) each(do func(s *shardLink) error) error {
	errs := make([]error, len(w.shards))
	var all sync.WaitGroup
	for i, s := range w.shards {
		all.Go(func() { errs[i] = do(s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (w *clusterWorker) send(s *shardLink) error {
	if _, err := binary.Encode(s.buffer, binary.LittleEndian, w.slope[s.first:s.last]); err != nil {
		return err
	}
	_, err := s.conn.Write(s.buffer)
	return err
}

func (w *clusterWorker) receive(s *shardLink) error {
	if _, err := io.ReadFull(s.conn, s.buffer); err != nil {
		return err
	}
	_, err := binary.Decode(s.buffer, binary.LittleEndian, w.params[s.first:s.last])
	return err
}

// shardServer has a part of the parameters.
type shardServer struct {
	role    *clusterRole
	first   int
	mu      sync.Mutex
	applied *sync.Cond
	steps   int // applied
	waiting int // workers whose gradients are in the sum

	sum, params     []float32
	exact, velocity []float64
	encoded         []byte // parameters
}

func (r *clusterRole) serve() error {
	s := &shardServer{role: r}
	s.applied = sync.NewCond(&s.mu)
	first, last := share(newClusterNetwork().parameters(), r.Index, len(r.Servers))
	s.first = first
	size := last - first
	s.sum, s.params = make([]float32, size), make([]float32, size)
	s.exact, s.velocity = make([]float64, size), make([]float64, size)
	s.encoded = make([]byte, 4*size)
	file, err := os.OpenFile(r.Checkpoint, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := readNumbers(file, first, s.exact); err != nil {
		return err
	}
	all := newClusterNetwork().parameters()
	if err := readNumbers(file, all+first, s.velocity); err != nil {
		return err
	}
	for k, v := range s.exact {
		s.params[k] = float32(v)
	}
	if err := s.encode(); err != nil {
		return err
	}

	listener, err := net.Listen("tcp", r.Servers[r.Index])
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = s.exchange(conn) }() // until the worker ends: that is its error
		}
	}()
	err = ready(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := errors.Join(writeNumbers(file, first, s.exact),
			writeNumbers(file, all+first, s.velocity)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	if err != nil {
		return err
	}
	select {} // the server ends with its input
}

// exchange sends the parameters to a worker, and again for each of its gradients.
func (s *shardServer) exchange(conn net.Conn) error {
	gradient := make([]float32, len(s.params))
	buffer := make([]byte, len(s.encoded))
	for {
		if _, err := conn.Write(s.encoded); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return err
		}
		if _, err := binary.Decode(buffer, binary.LittleEndian, gradient); err != nil {
			return err
		}
		if err := s.add(gradient); err != nil {
			return err
		}
	}
}

// add adds a worker's gradient, and returns after the step with those of all workers. No worker adds
// to the next sum, nor changes the encoded parameters, before all have received them.
func (s *shardServer) add(gradient []float32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	addOne(s.sum, gradient, 1)
	s.waiting++
	step := s.steps
	if s.waiting < s.role.Workers {
		for s.steps == step {
			s.applied.Wait()
		}
		return nil
	}
	descend(s.params, s.exact, s.velocity, s.sum, clusterRate, clusterMomentum)
	clear(s.sum)
	s.waiting = 0
	s.steps++
	s.applied.Broadcast()
	return s.encode()
}

func (s *shardServer) encode() error {
	_, err := binary.Encode(s.encoded, binary.LittleEndian, s.params)
	return err
}
