package importer

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// SacctFields are the columns of sacct that an import reads. SubmitLine is the last one, because it
// may contain the separator.
func SacctFields() []string {
	return []string{
		"JobIDRaw", "JobName", "User", "State", "Start", "End", "ElapsedRaw", "TimelimitRaw",
		"AllocCPUS", "NodeList", "SubmitLine",
	}
}

// slurm reads the output of sacct --parsable2: a row per job, and rows of job steps, which are
// skipped. Model, batch size, epochs and dataset come from flags of the submitted command such as
// --batch-size 64; the model is the name of the job if no flag names it.
func (r *Reader) slurm(name string, in io.Reader) error {
	var header []string
	isUnknown := false
	return eachLine(in, func(number int, text []byte) {
		line := string(text)
		if header == nil {
			header = strings.Split(line, "|")
			for _, need := range SacctFields() {
				if !slices.Contains(header, need) {
					isUnknown = true
					r.unreadable++
					r.refuse(Place{name, number}, refuse(ReasonUnreadable, need,
						"no such column: want the output of sacct --parsable2 --format=%s",
						strings.Join(SacctFields(), ",")))
					return
				}
			}
			return
		}
		if isUnknown {
			return
		}
		if row := strings.SplitN(line, "|", len(header)); len(row) == len(header) {
			r.slurmJob(Place{name, number}, header, row)
		} else {
			r.read++
			r.refuse(Place{name, number}, refuse(ReasonUnreadable, "",
				"the row has %d fields, the header %d", len(row), len(header)))
		}
	})
}

// slurmStates maps states of Slurm to words of outcomes. Others, such as RUNNING, are no end.
var slurmStates = map[string]string{
	"COMPLETED": schemas.EventFinished, "CANCELLED": schemas.EventCancelled,
	"FAILED": schemas.EventFailed, "NODE_FAIL": schemas.EventFailed,
	"OUT_OF_MEMORY": schemas.EventFailed, "BOOT_FAIL": schemas.EventFailed,
	"PREEMPTED": schemas.EventFailed, "DEADLINE": schemas.EventFailed,
	"TIMEOUT": schemas.EventFailed,
}

// slurmFlags are the fields that the flags of a submitted command may give.
var slurmFlags = []string{
	FieldModel, FieldDataset, FieldBatchSize, FieldEpochs, FieldTrainingSamples,
}

// slurmJob adds the job of a row.
func (r *Reader) slurmJob(at Place, header, row []string) {
	cell := func(name string) string { return strings.TrimSpace(row[slices.Index(header, name)]) }
	if strings.Contains(cell("JobIDRaw"), ".") {
		return // a step of a job
	}
	state, _, _ := strings.Cut(cell("State"), " ") // CANCELLED by 1000
	outcome, ended := slurmStates[state]
	if !ended {
		r.read++
		r.refuse(at, refuse(ReasonUnfinished, "State", "the job is %s: only ended jobs can be imported",
			strings.ToLower(clip(state))))
		return
	}
	d := &runDraft{
		Place:     at,
		named:     cell("JobName"),
		isTimeout: state == "TIMEOUT",
		values: map[string]string{
			FieldRunID: cell("JobIDRaw"), FieldUser: cell("User"), FieldOutcome: outcome,
			FieldCPUs: cell("AllocCPUS"), FieldStartedAt: cell("Start"),
			FieldSeconds: cell("ElapsedRaw"), FieldNodes: strings.Join(expandHosts(cell("NodeList")), ","),
		},
		called: map[string]string{
			FieldRunID: "JobIDRaw", FieldCPUs: "AllocCPUS", FieldStartedAt: "Start",
			FieldSeconds: "ElapsedRaw", FieldNodes: "NodeList",
		},
	}
	if minutes, err := strconv.ParseFloat(cell("TimelimitRaw"), 64); err == nil && minutes > 0 {
		d.limit = 60 * minutes
	}
	flags := commandFlags(cell("SubmitLine"))
	columns := columnsOf(slices.Sorted(maps.Keys(flags)), r.o.Columns)
	for _, field := range slurmFlags {
		if name, found := columns[field]; found {
			d.values[field], d.called[field] = flags[name], "--"+name
		}
	}
	if r.value(d, FieldModel) == "" {
		d.values[FieldModel] = cell("JobName")
	}
	r.addRun(d)
}

// commandFlags returns the flags of a command by their names: --name value or --name=value.
func commandFlags(line string) map[string]string {
	flags := map[string]string{}
	words := strings.Fields(line)
	for i, word := range words {
		name, isLong := strings.CutPrefix(word, "--")
		if !isLong {
			continue
		}
		if name, value, found := strings.Cut(name, "="); found {
			flags[name] = value
		} else if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			flags[name] = words[i+1]
		}
	}
	return flags
}

// maxHosts is the maximum number of nodes in a list of hosts.
const maxHosts = 256

// expandHosts expands a list of hosts such as gpu[01-03,7],login to at most maxHosts names.
func expandHosts(list string) (hosts []string) {
	for len(list) > 0 && len(hosts) < maxHosts {
		end := strings.IndexByte(list, ',')
		if open := strings.IndexByte(list, '['); open >= 0 && (end < 0 || open < end) {
			closing := strings.IndexByte(list, ']')
			if closing < open {
				return append(hosts, list)
			}
			prefix, numbers, rest := list[:open], list[open+1:closing], list[closing+1:]
			suffix, _, _ := strings.Cut(rest, ",")
			for _, part := range strings.Split(numbers, ",") {
				hosts = append(hosts, hostRange(prefix, part, suffix, maxHosts-len(hosts))...)
			}
			list = strings.TrimPrefix(rest[len(suffix):], ",")
			continue
		}
		host, rest, _ := strings.Cut(list, ",")
		if host != "" && host != "None assigned" {
			hosts = append(hosts, host)
		}
		list = rest
	}
	return hosts
}

// hostRange expands a number or a range of numbers with leading zeros, to at most limit names.
func hostRange(prefix, part, suffix string, limit int) (hosts []string) {
	first, last, isRange := strings.Cut(part, "-")
	from, err := strconv.ParseUint(first, 10, 32)
	until := from
	if isRange && err == nil {
		until, err = strconv.ParseUint(last, 10, 32)
	}
	if err != nil {
		return []string{prefix + part + suffix}
	}
	for n := from; n <= until && len(hosts) < limit; n++ {
		hosts = append(hosts, fmt.Sprintf("%s%0*d%s", prefix, len(first), n, suffix))
	}
	return hosts
}

// limitReason is the reason of a job that the batch system ended at its time limit.
func limitReason(limit float64) string {
	return fmt.Sprintf("the time limit of %s was reached", duration(limit).Round(time.Second))
}
