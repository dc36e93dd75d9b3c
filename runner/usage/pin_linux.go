package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// reservationDir has a lock file for each CPU, by which the jobs of this machine agree who is pinned to
// it. The kernel releases the locks of a process that is killed.
const reservationDir = "/tmp/courier-cpus"

// Reservation is a set of CPUs that no other Reservation of this machine holds. The threads of a job
// run only on them. Otherwise two jobs with more threads than CPUs preempt each other's threads while
// the others of the job wait for them: with a barrier after every mini-batch both run at less than half
// of the speed.
type Reservation struct {
	dir   string
	locks map[int]*os.File // by CPU
	own   unix.CPUSet      // CPUs that this process may use
}

// NewReservation returns a reservation without CPUs.
func NewReservation() (*Reservation, error) { return newReservation(reservationDir) }

func newReservation(dir string) (*Reservation, error) {
	r := &Reservation{dir: dir, locks: map[int]*os.File{}}
	if err := unix.SchedGetaffinity(0, &r.own); err != nil {
		return nil, fmt.Errorf("read the CPUs of this process: %w", err)
	}
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		err = os.Chmod(dir, 0o777|fs.ModeSticky) // for all users, regardless of the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the directory of CPU locks: %w", err)
	}
	return r, nil
}

// Pin reserves a number of CPUs, and lets the processes of the cgroup run only on these. If too few are
// free it reserves those that are, and the processes may run on every CPU; ok is then false.
func (r *Reservation) Pin(c *Cgroup, cpus int) (ok bool, err error) {
	held := r.reserve(cpus)
	set := r.own
	if held == cpus {
		set.Zero()
		for cpu := range r.locks {
			set.Set(cpu)
		}
	}
	return held == cpus, c.setAffinity(&set)
}

// Release releases all CPUs.
func (r *Reservation) Release() { r.reserve(0) }

// reserve reserves or releases CPUs until there are as many as wanted. It returns how many there are.
func (r *Reservation) reserve(wanted int) int {
	for cpu, f := range r.locks {
		if len(r.locks) <= wanted {
			break
		}
		_ = f.Close() // which releases the lock; nothing was written
		delete(r.locks, cpu)
	}
	for cpu := 0; cpu < len(r.own)*strconv.IntSize && len(r.locks) < wanted; cpu++ {
		if r.locks[cpu] != nil || !r.own.IsSet(cpu) {
			continue
		}
		if f := r.lock(cpu); f != nil {
			r.locks[cpu] = f
		}
	}
	return len(r.locks)
}

// lock returns the locked file of a CPU; nil if another process holds it.
func (r *Reservation) lock(cpu int) *os.File {
	path := filepath.Join(r.dir, strconv.Itoa(cpu))
	const safe = unix.O_NOFOLLOW | unix.O_NONBLOCK // refuse a link that another user planted, do not wait for a pipe
	f, err := os.OpenFile(path, safe, 0)           // without O_CREATE, with which Linux refuses another user's file
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(path, safe|os.O_CREATE, 0o644)
	}
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close() // nothing was written
		return nil
	}
	return f
}

// setAffinity sets the CPUs of all threads of the cgroup. Threads that are started meanwhile inherit
// the CPUs of their creator, so it repeats until no new thread appears.
func (c *Cgroup) setAffinity(set *unix.CPUSet) error {
	done := map[int]bool{}
	for isNew := true; isNew; {
		isNew = false
		threads, err := c.threads()
		if err != nil {
			return err
		}
		for _, t := range threads {
			if done[t] {
				continue
			}
			done[t], isNew = true, true
			if err := unix.SchedSetaffinity(t, set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("pin thread %d: %w", t, err)
			}
		}
	}
	return nil
}

// threads returns the IDs of the threads in the cgroup that this process can see.
func (c *Cgroup) threads() ([]int, error) {
	text, err := os.ReadFile(filepath.Join(c.dir(), "cgroup.threads"))
	if err != nil {
		return nil, fmt.Errorf("list the threads of a cgroup: %w", err)
	}
	return slices.DeleteFunc(parsePIDs(text), func(id int) bool { return id == 0 }), nil
}
