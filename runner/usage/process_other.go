//go:build !linux

package usage

import "time"

// Read returns no figures, because they are available on Linux only.
func Read(int, *Cgroup) Totals { return Totals{at: time.Now()} }
