// Package usage measures what the processes of a job use: CPU time, memory, storage, and the time
// that they wait for resources.
//
// # Use
//
// Started returns the Totals of a command before its start, and Read its current Totals. Since
// returns the difference of two Totals, and Used.Fill writes it into an epoch event. NewCgroup
// creates a cgroup for the command, whose figures are more exact than those of its processes.
//
// # Where the figures come from
//
// Each figure comes from the cgroup that was created for the command, if that counts it, otherwise from
// the process tree. A command that moves itself to another cgroup (systemd-run --scope) is measured by
// its process tree.
//
// NewCgroup creates a cgroup below the one of this process, if that is permitted and does not
// change how the job runs: no controller for processors or disks is enabled. The cgroup is removed at
// the end, or by a later run if processes were left in it.
//
// A cgroup that shares the processors needs the CPU controller. NewCgroup then moves this process to a leaf
// of its cgroup, and creates the cgroup of the job as a sibling of the leaf. That is possible if the cgroup
// is delegated to the user and no other process is in it. The error contains a command that helps.
//
// Only cgroup v2 is used. If the cgroup does not measure CPU pressure, the time that the threads of the
// process tree waited for a CPU replaces it.
//
// # Limits
//
// A figure that was not measured is nil, never 0. The figures exist on Linux only. Memory that
// processes share counts in each of them. A job that passes its work to a daemon (docker run) is
// measured without it.
//
// # Concurrency, test
//
// The functions keep no state. The parsers of /proc and of cgroup files are pure functions with
// tables and fuzz tests. Other tests create cgroups, and are skipped where that is not permitted.
package usage
