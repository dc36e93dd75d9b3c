//go:build !linux

package engine

import (
	"os"
	"os/exec"
)

// tryLock fails: this system is not supported.
func tryLock(*os.File) error { return ErrUnsupported }

// detach does nothing: this system starts no child.
func detach(*exec.Cmd) {}

// killGroup fails: this system is not supported.
func killGroup(int) error { return ErrUnsupported }

func physicalMemory() int64 { return 0 }
