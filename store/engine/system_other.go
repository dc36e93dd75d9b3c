//go:build !linux

package engine

import (
	"os"
	"os/exec"
)

func tryLock(*os.File) error { return ErrUnsupported }

func unlock(*os.File) error { return nil }

func detach(*exec.Cmd) {}

func killGroup(int) error { return ErrUnsupported }

func physicalMemory() int64 { return 0 }
