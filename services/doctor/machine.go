package doctor

import (
	"fmt"
	"os"
	"path/filepath"

	"courier/schemas"
	"courier/spool"
)

// lowDisk is the free space below which events may soon not be kept.
const lowDisk = 1 << 30

// spoolCheck checks the directory for events that could not be published.
func spoolCheck(dir string, freeBytes func(string) (uint64, error)) Check {
	waiting, _ := spool.RunFiles(dir) // an invalid pattern matches nothing
	c := Check{"disk", OK, "no event waits in " + dir, ""}
	if len(waiting) > 0 {
		c.Result = Warn
		c.Found = fmt.Sprintf("events of %s wait in %s", schemas.FormatCount(uint64(len(waiting)), "run"), dir)
		c.Do = "they are published by the next courier run that reaches their cluster"
	}
	for !isDir(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	free, err := freeBytes(dir)
	if err == nil && free < lowDisk {
		c.Result = Warn
		c.Found += fmt.Sprintf("; only %d MiB are free", free>>20)
		c.Do = "free some space, so that jobs can keep their events while NATS is unreachable"
	}
	return c
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func engineCheck(library string, err error) Check {
	if err != nil {
		return Check{
			"engine", Warn, "no ClickHouse engine on this machine",
			"courier engine install, if courier all should have SQL",
		}
	}
	return Check{"engine", OK, library, ""}
}
