package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/runner/output"
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

// slurm reads the output of sacct with --parsable2, or with commas: a row per job, and rows of job steps,
// which are skipped. Model, batch size, epochs and dataset come from flags of the submitted command such
// as --batch-size 64; the model is the name of the job if no flag names it.
func (r *Reader) slurm(name string, in io.Reader) error {
	var header []string
	var separator string
	return eachLine(in, func(number int, text []byte) {
		at, line := Place{name, number}, string(text)
		if header == nil {
			separator = separatorOfSacct(line)
			if header = strings.Split(line, separator); len(header) == 1 {
				r.found.Unreadable++
				r.refuse(at, refuse(ReasonUnreadable, "", "the columns are aligned, which truncates them: write"+
					" the file with sacct --parsable2"))
			}
			return
		}
		if len(header) == 1 {
			return
		}
		row := strings.SplitN(line, separator, len(header))
		if len(row) != len(header) {
			r.reject(at, refuse(ReasonUnreadable, "", "the row has %d fields, the header %d", len(row),
				len(header)))
			return
		}
		cells := map[string]string{}
		for i, column := range header {
			if v := cell(row[i]); v != "Unknown" {
				cells[column] = v
			}
		}
		if !strings.Contains(cmp.Or(cells["JobIDRaw"], cells["JobID"]), ".") { // a step of a job
			r.batchJob(at, cells)
		}
	})
}

// Names of cells of a job that are no fields of a run.
const (
	batchName    = "name"
	batchCommand = "command"
	batchLimit   = "limit"         // as a duration
	batchMinutes = "limit_minutes" // as a number
)

// batchNames are the names of each cell in sacct, in sacct --json, in the accounting log of PBS, and in the
// objects of Kubernetes, the preferred one first.
var batchNames = map[string][]string{
	FieldRunID: {"JobIDRaw", "JobID", "job_id", "metadata.name"},
	FieldUser:  {"User", "user", "association.user"},
	FieldCPUs: {
		"AllocCPUS", "NCPUS", "ReqCPUS", "required.CPUs", "resources_used.ncpus", "Resource_List.ncpus", "cpus",
	},
	FieldStartedAt: {"Start", "time.start", "start", "status.startTime"},
	FieldEndedAt:   {"End", "time.end", "end", "status.completionTime"},
	FieldSeconds:   {"ElapsedRaw", "Elapsed", "time.elapsed"},
	FieldNodes:     {"NodeList", "nodes", "exec_host", "spec.nodeName"},
	FieldOutcome:   {"State", "state.current", "state", "status.phase"},
	FieldModel: {
		"metadata.labels.batch.kubernetes.io/job-name", "metadata.labels.job-name", "metadata.labels.app",
		"metadata.labels.app.kubernetes.io/name", "metadata.name",
	},
	batchName:    {"JobName", "name", "jobname"},
	batchCommand: {"SubmitLine", "submit_line", "command"},
	batchLimit:   {"Timelimit", "Resource_List.walltime"},
	batchMinutes: {"TimelimitRaw", "time.limit.number", "time.limit"},
}

// batchJob adds the job that cells of a batch system describe, with the fields of its command.
func (r *Reader) batchJob(at Place, cells map[string]string) {
	d := newDraft(at)
	for field, names := range batchNames {
		for _, name := range names {
			if v := cells[name]; v != "" && d.values[field] == "" {
				d.values[field], d.called[field] = v, name
			}
		}
	}
	if d.values[FieldSeconds] != "" { // the time between start and end includes suspensions
		delete(d.values, FieldEndedAt)
	}
	state, _, _ := strings.Cut(strings.ReplaceAll(d.values[FieldOutcome], ",", " "), " ") // CANCELLED by 1000
	outcome, known := outcomeOf(state)
	if !known || outcome == "" {
		r.reject(at, refuse(ReasonUnfinished, "State", "the job is %s: only ended jobs can be imported",
			strings.ToLower(clip(state))))
		return
	}
	d.values[FieldOutcome], d.isTimeout = state, state == "TIMEOUT"
	if minutes, err := strconv.ParseFloat(d.values[batchMinutes], 64); err == nil && minutes > 0 {
		d.limit = 60 * minutes
	} else if v, known := output.ParseSeconds(d.values[batchLimit]); known && v > 0 {
		d.limit = v
	}
	d.values[FieldNodes] = strings.Join(expandHosts(d.values[FieldNodes]), ",")
	flags := commandFlags(d.values[batchCommand])
	for field, v := range commandFields(flags) {
		if _, requested := r.o.Columns[field]; !requested {
			d.values[field] = v
		}
	}
	for field, name := range r.o.Columns {
		if v := flags[name]; v != "" {
			d.values[field], d.called[field] = v, "--"+name
		}
	}
	if r.value(d, FieldModel) == "" {
		d.values[FieldModel] = d.values[batchName]
	}
	r.addRun(d)
}

// slurmDocument returns the jobs of the output of sacct --json; nil for another document.
func slurmDocument(fields map[string]json.RawMessage) (jobs []map[string]string) {
	var meta map[string]json.RawMessage
	if json.Unmarshal(fields["meta"], &meta) != nil || meta["Slurm"] == nil && meta["slurm"] == nil {
		return nil
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(fields["jobs"], &list) != nil {
		return nil
	}
	for _, job := range list {
		cells := map[string]string{}
		flatten(cells, "", job)
		var tres struct {
			Allocated []struct {
				Type  string
				Count json.Number
			}
		}
		if json.Unmarshal(job["tres"], &tres) == nil {
			for _, r := range tres.Allocated {
				if r.Type == "cpu" {
					cells["AllocCPUS"] = r.Count.String()
				}
			}
		}
		jobs = append(jobs, cells)
	}
	return jobs
}

// commandFields returns the fields of a run that the flags of its command give.
func commandFields(flags map[string]string) map[string]string {
	n := names{
		have:   slices.Sorted(maps.Keys(flags)),
		values: func(name string) []string { return []string{flags[name]} },
	}
	found := map[string]string{}
	for _, f := range fieldNames {
		switch f.field {
		case FieldModel, FieldDataset, FieldBatchSize, FieldEpochs, FieldTrainingSamples:
			if name := n.known(f.field, strings.Fields(f.known)); name != "" {
				found[f.field] = flags[name]
			}
		}
	}
	for short, field := range map[string]string{"b": FieldBatchSize, "e": FieldEpochs} {
		if v := flags[short]; found[field] == "" && mayBe(field, v) {
			found[field] = v
		}
	}
	return found
}

// commandFlags returns the flags of a command by their names: --name value, --name=value, -n value, or
// name=value, of which the name is the last part of group.name. Of equal flags the last one counts, but
// a later one without a number does not replace a number: -e is a file of sbatch, too.
func commandFlags(line string) map[string]string {
	flags := map[string]string{}
	set := func(name, value string) {
		_, err := strconv.ParseFloat(value, 64)
		if _, old := strconv.ParseFloat(flags[name], 64); flags[name] == "" || err == nil || old != nil {
			flags[name] = value
		}
	}
	words := strings.Fields(strings.NewReplacer(`"`, " ", "'", " ").Replace(line))
	for i, word := range words {
		name := strings.TrimLeft(word, "-")
		name, value, hasValue := strings.Cut(name, "=")
		isFlag := strings.HasPrefix(word, "-")
		if j := strings.LastIndexByte(name, '.'); j >= 0 && hasValue {
			name = name[j+1:]
		}
		switch {
		case name == "" || !isFlag && !hasValue:
		case hasValue:
			set(name, value)
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			set(name, words[i+1])
		}
	}
	return flags
}

// pbsLine is an accounting record of PBS: 03/04/2024 11:00:00;E;123.server;user=ada queue=q ...
var pbsLine = regexp.MustCompile(`^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Z]);([^;]+);(.*)$`)

// pbs reads the accounting log of PBS: a line per ended job (record E); others are skipped.
func (r *Reader) pbs(name string, in io.Reader) error {
	return eachLine(in, func(number int, text []byte) {
		m := pbsLine.FindStringSubmatch(string(text))
		if m == nil {
			r.reject(Place{name, number}, refuse(ReasonUnreadable, "",
				"want an accounting record of PBS, such as 03/04/2024 11:00:00;E;123.server;user=ada"))
			return
		}
		if m[1] != "E" {
			return
		}
		cells := map[string]string{"JobIDRaw": m[2]}
		for word := range strings.FieldsSeq(m[3]) {
			if key, v, found := strings.Cut(word, "="); found {
				cells[key] = v
			}
		}
		cells["State"] = endOf(cmp.Or(cells["Exit_status"], "0") == "0")
		limit, _ := output.ParseSeconds(cells["Resource_List.walltime"])
		used, _ := output.ParseSeconds(cells["resources_used.walltime"])
		if limit > 0 && used >= limit && cells["State"] == schemas.EventFailed {
			cells["State"] = "TIMEOUT"
		}
		cells["exec_host"] = pbsCores.ReplaceAllString(cells["exec_host"], ",")
		_, command, _ := strings.Cut(m[3], "ubmit_arguments=") // of PBS and Torque
		if quoted, isQuoted := strings.CutPrefix(command, `"`); isQuoted {
			command, _, _ = strings.Cut(quoted, `"`)
		}
		cells["SubmitLine"] = command
		r.batchJob(Place{name, number}, cells)
	})
}

// maxHosts is the maximum number of nodes in a list of hosts.
const maxHosts = 256

// Lists of hosts: gpu[01-03,7]-ib,login of Slurm, and n01/0*4+n02/0*4 of PBS.
var (
	hostForm = regexp.MustCompile(`([^,\[]*)(?:\[([^\]]*)\]([^,]*))?,?`)
	pbsCores = regexp.MustCompile(`/[^+]*(?:\+|$)|\+`)
)

// expandHosts expands a list of hosts to at most maxHosts names.
func expandHosts(list string) (hosts []string) {
	for _, m := range hostForm.FindAllStringSubmatch(list, maxHosts) {
		for part := range strings.SplitSeq(m[2], ",") {
			for _, host := range hostRange(m[1], part, m[3]) {
				if host != "" && host != "None assigned" && len(hosts) < maxHosts && !slices.Contains(hosts, host) {
					hosts = append(hosts, host)
				}
			}
		}
	}
	return hosts
}

// hostRange expands a number or a range of numbers with leading zeros, to at most maxHosts names.
func hostRange(prefix, part, suffix string) (hosts []string) {
	first, last, _ := strings.Cut(part, "-")
	from, err := strconv.ParseUint(first, 10, 32)
	until, errUntil := strconv.ParseUint(cmp.Or(last, first), 10, 32)
	if err != nil || errUntil != nil {
		return []string{prefix + part + suffix}
	}
	for n := from; n <= until && len(hosts) < maxHosts; n++ {
		hosts = append(hosts, fmt.Sprintf("%s%0*d%s", prefix, len(first), n, suffix))
	}
	return hosts
}

// limitReason is the reason of a job that the batch system ended at its time limit.
func limitReason(limit float64) string {
	return fmt.Sprintf("the time limit of %s was reached", duration(limit).Round(time.Second))
}
