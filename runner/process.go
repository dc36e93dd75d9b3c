package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"courier/runner/usage"
	"courier/schemas"
)

// Placeholders in the command of a job.
const (
	batchPlaceholder      = "{batch}"
	batchVariable         = "COURIER_BATCH_SIZE" // of the environment
	cpusPlaceholder       = "{cpus}"
	workersPlaceholder    = "{workers}"
	workersVariable       = "COURIER_WORKERS" // of the environment
	loadersPlaceholder    = "{loaders}"
	epochsPlaceholder     = "{epochs}"
	epochsDonePlaceholder = "{epoch}" // completed epochs; 0 except after a restart
)

// filledCommand replaces the placeholders of a job in a command.
func filledCommand(command []string, s *schemas.Setting, epochsDone uint32) []string {
	return FillPlaceholders(command,
		batchPlaceholder, fmt.Sprint(s.BatchSize), cpusPlaceholder, fmt.Sprint(s.CPUs),
		workersPlaceholder, fmt.Sprint(max(s.Workers, 1)), loadersPlaceholder, fmt.Sprint(s.Loaders),
		epochsPlaceholder, fmt.Sprint(s.Epochs), epochsDonePlaceholder, fmt.Sprint(epochsDone),
	)
}

// FillPlaceholders replaces placeholders in a command, each of which is followed by its value.
func FillPlaceholders(command []string, valued ...string) []string {
	replacer := strings.NewReplacer(valued...)
	filled := make([]string, len(command))
	for i, argument := range command {
		filled[i] = replacer.Replace(argument)
	}
	return filled
}

// placeholders are all of them.
var placeholders = []string{
	batchPlaceholder, cpusPlaceholder, workersPlaceholder, loadersPlaceholder, epochsPlaceholder,
	epochsDonePlaceholder,
}

// bracedWord matches what looks like a placeholder, and ${name}, a variable of a shell.
var bracedWord = regexp.MustCompile(`\$?\{[a-z][a-z_]*\}`)

// unknownPlaceholders returns the lower-case words in braces that are no placeholders. They are mostly
// mistyped, but the command may have a meaning for them, such as {print} of awk.
func unknownPlaceholders(command []string) (unknown []string) {
	for _, argument := range command {
		for _, word := range bracedWord.FindAllString(argument, -1) {
			isOther := word[0] == '{' && !slices.Contains(placeholders, word)
			if isOther && !slices.Contains(unknown, word) {
				unknown = append(unknown, word)
			}
		}
	}
	return unknown
}

// HasPlaceholder reports whether a command contains a placeholder.
func HasPlaceholder(command []string, placeholder string) bool {
	return slices.ContainsFunc(command, func(argument string) bool {
		return strings.Contains(argument, placeholder)
	})
}

// threadVariables limit the threads of OpenMP, which PyTorch and scikit-learn use, of the linear
// algebra libraries, and of NumExpr, Numba and Polars.
var threadVariables = []string{
	"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
	"NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
}

// limitThreads sets the thread variables that the environment does not have. A command with {cpus}
// is not limited, because it may start that number of processes.
func limitThreads(env []string, cpus uint32) []string {
	for _, name := range threadVariables {
		if !isSet(env, name) {
			env = append(env, fmt.Sprintf("%s=%d", name, cpus))
		}
	}
	return env
}

// shortenSpins lets the threads of OpenMP (GCC's, Intel's and LLVM's) sleep soon when they wait for each
// other, unless the environment says how they wait. A job with more threads than CPUs otherwise spins
// for its whole time slices: 133 times slower with 25 µs of work between two barriers (measured with
// two threads that were pinned to one CPU; 1.7 times with this setting, and as fast on two CPUs). A
// PyTorch loop with two threads beside three busy processes on two CPUs is five times slower without it.
func shortenSpins(env []string) []string {
	for _, name := range []string{"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} {
		if isSet(env, name) {
			return env
		}
	}
	return append(env, "GOMP_SPINCOUNT=1000", "KMP_BLOCKTIME=0")
}

// isSet reports whether the environment has a variable.
func isSet(env []string, name string) bool {
	return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// environment returns the environment of a job: that of this process and the configuration of the
// job. Python buffers its output unless PYTHONUNBUFFERED is set.
func environment(job string, s *schemas.Setting, epochsDone uint32, slo time.Duration) []string {
	env := append(os.Environ(),
		"PYTHONUNBUFFERED=1",
		"COURIER_JOB_ID="+job,
		fmt.Sprintf("COURIER_CPUS=%d", s.CPUs),
		fmt.Sprintf("%s=%d", workersVariable, max(s.Workers, 1)),
		fmt.Sprintf("COURIER_LOADERS=%d", s.Loaders),
		fmt.Sprintf("COURIER_EPOCHS=%d", s.Epochs),
		fmt.Sprintf("COURIER_EPOCHS_DONE=%d", epochsDone),
	)
	if s.BatchSize > 0 {
		env = append(env, fmt.Sprintf("%s=%d", batchVariable, s.BatchSize))
	}
	if slo > 0 {
		env = append(env, "COURIER_SLO_SECONDS="+strconv.FormatFloat(slo.Seconds(), 'f', -1, 64))
	}
	return env
}

// newCommand returns the command for a program with its arguments and environment.
func newCommand(arguments, env []string, stdin *os.File) *exec.Cmd {
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = env
	if stdin != nil {
		cmd.Stdin = stdin // a nil *os.File is not a nil io.Reader
	}
	return cmd
}

// windowSize is the size of a terminal.
type windowSize struct{ rows, columns uint16 }

// outputChunk is output of a job with its time of arrival.
type outputChunk struct {
	stream int // 0: standard output or the terminal, 1: standard error; or the number of a connection
	data   []byte
	at     time.Time // has the monotonic clock
}

// jobProcess is the process of a job. It leads its own session and process group, and its output
// is a pseudo terminal or two pipes.
type jobProcess struct {
	cmd     *exec.Cmd
	cgroup  *usage.Cgroup    // nil: the cgroup of this process
	streams []*os.File       // this process's ends of its output, by outputChunk.stream
	chunks  chan outputChunk // closed at the end of the output

	exited  chan struct{} // closed when state and endedAt are set
	state   *os.ProcessState
	endedAt time.Time // has the monotonic clock

	terminal    *os.File // this process's end of the pseudo terminal; nil: pipes
	terminalErr error    // why a requested pseudo terminal could not be created
}

// startProcess starts a command in a cgroup, which may be nil. Its output first goes to copyTo, in
// the reading goroutine, and then to chunks.
func startProcess(
	cmd *exec.Cmd, cgroup *usage.Cgroup, usePTY bool, size windowSize, copyTo func(stream int, data []byte),
) (*jobProcess, error) {
	p := &jobProcess{
		cmd:    cmd,
		cgroup: cgroup,
		chunks: make(chan outputChunk, 64),
		exited: make(chan struct{}),
	}
	childEnds, err := p.openStreams(usePTY, size)
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// A parent-death signal is sent when the thread ends that has started the command. It ends with
		// this goroutine.
		runtime.LockOSThread()
		err := cgroup.Start(cmd)
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the state contains how it ended
		p.state, p.endedAt = cmd.ProcessState, time.Now()
		close(p.exited)
	}()
	err = <-started
	for _, f := range childEnds {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}

	go p.read(copyTo)
	return p, nil
}

// openStreams opens a pseudo terminal if it is requested and available, and otherwise pipes. It
// returns the child's ends.
func (p *jobProcess) openStreams(usePTY bool, size windowSize) ([]*os.File, error) {
	if usePTY {
		childEnds, err := p.openTerminal(size)
		if err == nil {
			isolate(p.cmd, true)
			return childEnds, nil
		}
		p.terminalErr = err
	}
	isolate(p.cmd, false)
	return p.openPipes()
}

// openPipes opens two pipes and returns the child's ends.
func (p *jobProcess) openPipes() ([]*os.File, error) {
	var childEnds []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, fmt.Errorf("open a pipe: %w", err)
		}
		p.streams, childEnds = append(p.streams, r), append(childEnds, w)
	}
	p.cmd.Stdout, p.cmd.Stderr = childEnds[0], childEnds[1]
	return childEnds, nil
}

// read reads every stream to its end and then closes chunks.
func (p *jobProcess) read(copyTo func(stream int, data []byte)) {
	var readers sync.WaitGroup
	for i, f := range p.streams {
		readers.Go(func() { p.readStream(i, f, copyTo) })
	}
	readers.Wait()
	close(p.chunks)
}

// Limits of reading after the process has ended. Its children can keep the streams open forever.
const (
	maxQuietAfterExit = 300 * time.Millisecond // without output
	maxReadAfterExit  = 10 * time.Second       // in total
)

// standardErrorLead is how long a line of standard output waits for what was written to standard error just before it,
// such as the end of a progress bar. Without it, chance decides which of the two pipes is read first.
const standardErrorLead = 3 * time.Millisecond

// readStream reads one stream to its end. After the process has ended, it stops when no more
// output arrives.
func (p *jobProcess) readStream(i int, f *os.File, copyTo func(stream int, data []byte)) {
	buffer := make([]byte, 64<<10)
	var limit, deadline time.Time // in total and of the next read; zero while the process runs
	for {
		select {
		case <-p.exited:
			now := time.Now()
			if limit.IsZero() {
				limit = now.Add(maxReadAfterExit)
			}
			if deadline = now.Add(maxQuietAfterExit); deadline.After(limit) {
				deadline = limit
			}
			_ = f.SetReadDeadline(deadline) // if unsupported, it reads to the end of the stream
		default:
		}

		n, err := f.Read(buffer)
		if n > 0 {
			at := time.Now()
			copyTo(i, buffer[:n])
			if i == 0 && len(p.streams) > 1 && n < len(buffer) {
				<-time.After(standardErrorLead)
			}
			p.chunks <- outputChunk{stream: i, data: bytes.Clone(buffer[:n]), at: at}
		}
		isWakeUp := deadline.IsZero() || time.Now().Before(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) && isWakeUp {
			continue // wakeReaders has interrupted the read
		}
		if err != nil { // the end: io.EOF on a pipe, an I/O error on a terminal
			return
		}
	}
}

// wakeReaders interrupts the readers, so that they notice that the process has ended.
func (p *jobProcess) wakeReaders() {
	for _, f := range p.streams {
		_ = f.SetReadDeadline(time.Now()) // if unsupported, they read to the end of the stream
	}
}

// close closes this process's ends of the streams.
func (p *jobProcess) close() {
	for _, f := range p.streams {
		_ = f.Close() // it was only read
	}
}

// isRunning reports whether the process has not ended.
func (p *jobProcess) isRunning() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// usage returns what the process and its children have used. After the process has ended, only
// its CPU time and the figures of its cgroup are known.
func (p *jobProcess) usage() usage.Totals {
	totals := usage.Read(p.cmd.Process.Pid, p.cgroup)
	if totals.IsReaped() {
		<-p.exited // which follows at once; the state is not yet set where Wait has just returned
	}
	if !p.isRunning() {
		totals.AddExited(p.state)
	}
	return totals
}
