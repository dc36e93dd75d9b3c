//go:build !linux

package usage

import (
	"errors"
	"os/exec"
	"time"
)

// Cgroup is never created, because only Linux has cgroups.
type Cgroup struct{}

var errNoCgroups = errors.New("only Linux has cgroups")

// NewCgroup returns an error.
func NewCgroup(string, bool) (*Cgroup, error) { return nil, errNoCgroups }

// SetCPUs returns an error.
func (c *Cgroup) SetCPUs(float64, bool) error { return errNoCgroups }

// Reservation is never needed, because there are no cgroups.
type Reservation struct{}

// NewReservation implements the interface of Linux.
func NewReservation() (*Reservation, error) { return &Reservation{}, nil }

// Pin fails.
func (r *Reservation) Pin(*Cgroup, int) (bool, error) { return false, errNoCgroups }

// Release does nothing.
func (r *Reservation) Release() {}

func (c *Cgroup) dir() string { return "" }

// Start starts a command.
func (c *Cgroup) Start(cmd *exec.Cmd) error { return cmd.Start() }

// Remove does nothing.
func (c *Cgroup) Remove() error { return nil }

func readCgroup(string) (counters, map[string]stallTime) { return counters{}, nil }

// Read returns no figures, because they are available on Linux only.
func Read(int, *Cgroup) Totals { return Totals{at: time.Now()} }
