//go:build !linux && !darwin

package engine

import (
	"os"
	"os/exec"
)

// canSupervise says whether an engine can be run on this system at all.
const canSupervise = false

// tryLock refuses: files of this system are not locked here.
func tryLock(*os.File) error { return ErrUnsupported }

// detach changes nothing; no child is started on this system.
func detach(*exec.Cmd) {}

// killGroup refuses; no child is started on this system.
func killGroup(int) error { return ErrUnsupported }

// physicalMemory does not know.
func physicalMemory() int64 { return 0 }
