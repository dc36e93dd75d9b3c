package collector

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"courier/schemas"
)

// Placeholders in a job's command, and what stands for them.
const (
	placeholderBatch  = "{batch}"
	placeholderCPUs   = "{cpus}"
	placeholderEpochs = "{epochs}"
	placeholderDone   = "{epoch}" // epochs done: 0, or those before a restart
)

// fill puts the decided numbers into the command.
func fill(command []string, s *schemas.Setting, done uint32) []string {
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	r := strings.NewReplacer(placeholderBatch, number(s.BatchSize), placeholderCPUs, number(s.CPUs), placeholderEpochs, number(s.Epochs), placeholderDone, number(done))
	filled := make([]string, len(command))
	for i, argument := range command {
		filled[i] = r.Replace(argument)
	}
	return filled
}

// environment returns ours with what the job may want to know. Python holds
// lines back unless it is told not to.
func environment(ours []string, id string, s *schemas.Setting, done uint32, slo time.Duration) []string {
	all := append([]string(nil), ours...)
	all = append(all, "PYTHONUNBUFFERED=1", "COURIER_JOB_ID="+id, fmt.Sprintf("COURIER_BATCH_SIZE=%d", s.BatchSize),
		fmt.Sprintf("COURIER_CPUS=%d", s.CPUs), fmt.Sprintf("COURIER_EPOCHS=%d", s.Epochs), fmt.Sprintf("COURIER_EPOCHS_DONE=%d", done))
	if slo > 0 {
		all = append(all, "COURIER_SLO_SECONDS="+strconv.FormatFloat(slo.Seconds(), 'f', -1, 64))
	}
	return all
}

// chunk is bytes that the job printed, and when they arrived.
type chunk struct {
	stream int // 0: standard output or the terminal, 1: standard error
	data   []byte
	at     time.Time // carries the monotonic clock
}

// command is the job's running command. It leads a session and process group
// of its own, on a pseudo terminal or on pipes.
type command struct {
	cmd     *exec.Cmd
	streams []*os.File    // what it prints into, by chunk.stream
	chunks  chan chunk    // closed at the end of the output
	exited  chan struct{} // closed when the command has ended and state is set
	state   *os.ProcessState
	endedAt time.Time // carries the monotonic clock; set with state

	placement *placement // its cgroup; nil: it stays in ours

	terminal   *os.File // our side of the pseudo terminal; nil on pipes
	noTerminal error    // why there is none although it was asked for
}

// startCommand starts the program, in a cgroup where there is one for it. Its
// output passes through pass first, in the goroutine that reads it, and then
// arrives at chunks.
func startCommand(cmd *exec.Cmd, p *placement, usePTY bool, size windowSize, pass func(stream int, data []byte)) (*command, error) {
	c := &command{cmd: cmd, placement: p, chunks: make(chan chunk, 64), exited: make(chan struct{})}
	theirs, err := c.open(usePTY, size)
	if err != nil {
		return nil, err
	}
	err = p.start(cmd)
	for _, f := range theirs {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		_ = cmd.Wait() // state tells how it ended
		c.state, c.endedAt = cmd.ProcessState, time.Now()
		close(c.exited)
	}()
	go c.read(pass)
	return c, nil
}

// open gives the command its streams: a pseudo terminal if asked for and the
// system has one, else pipes. It returns the command's ends of them.
func (c *command) open(usePTY bool, size windowSize) ([]*os.File, error) {
	if usePTY {
		theirs, err := c.openTerminal(size)
		if err == nil {
			isolate(c.cmd, true)
			return theirs, nil
		}
		c.noTerminal = err
	}
	isolate(c.cmd, false)
	return c.openPipes()
}

// openPipes gives the command two pipes and returns its ends of them.
func (c *command) openPipes() ([]*os.File, error) {
	var theirs []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			c.close()
			return nil, fmt.Errorf("open a pipe: %w", err)
		}
		c.streams, theirs = append(c.streams, r), append(theirs, w)
	}
	c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1]
	return theirs, nil
}

// read reads every stream to its end and then closes chunks.
func (c *command) read(pass func(stream int, data []byte)) {
	var readers sync.WaitGroup
	for i, f := range c.streams {
		readers.Go(func() { c.readStream(i, f, pass) })
	}
	readers.Wait()
	close(c.chunks)
}

// How long output is awaited after the command has ended. Its children may
// hold the streams open for ever.
const (
	quietAfterExit = 300 * time.Millisecond // without a byte
	drainAfterExit = 10 * time.Second       // in all
)

// readStream reads one stream until it ends: at its end, or when the command has
// ended and nothing more comes.
func (c *command) readStream(i int, f *os.File, pass func(stream int, data []byte)) {
	buffer := make([]byte, 64<<10)
	var last, own time.Time // when to stop at the latest, and if nothing comes; zero while the command runs
	for {
		select {
		case <-c.exited:
			now := time.Now()
			if last.IsZero() {
				last = now.Add(drainAfterExit)
			}
			own = earlier(last, now.Add(quietAfterExit))
			_ = f.SetReadDeadline(own) // without deadlines we wait for the end
		default:
		}
		n, err := f.Read(buffer)
		if n > 0 {
			at := time.Now()
			pass(i, buffer[:n])
			c.chunks <- chunk{stream: i, data: append([]byte(nil), buffer[:n]...), at: at}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && (own.IsZero() || time.Now().Before(own)) {
			continue // woken because the command ended
		}
		if err != nil { // the end: io.EOF on a pipe, an I/O error on a terminal
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// wake lets readers notice that the command has ended.
func (c *command) wake() {
	for _, f := range c.streams {
		_ = f.SetReadDeadline(time.Now()) // without deadlines they wait for the end
	}
}

// close closes our ends of the streams.
func (c *command) close() {
	for _, f := range c.streams {
		_ = f.Close() // it was only read
	}
}

// running reports whether the command has not ended yet.
func (c *command) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// consumed returns what the command and its children took so far. Of one that
// has ended only the CPU time is known, and what its cgroup counted.
func (c *command) consumed() consumption {
	all := consumed(c.cmd.Process.Pid, c.placement.group())
	if all.tree.cpuSeconds == nil && !c.running() {
		seconds := (c.state.UserTime() + c.state.SystemTime()).Seconds()
		all.tree.cpuSeconds = &seconds
	}
	return all
}

// newCommand prepares the program with its arguments and environment.
func newCommand(filled, env []string, stdin *os.File) *exec.Cmd {
	cmd := exec.Command(filled[0], filled[1:]...)
	cmd.Env = env
	if stdin != nil {
		cmd.Stdin = stdin // a nil *os.File is not a nil io.Reader
	}
	return cmd
}
