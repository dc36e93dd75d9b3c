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

// slurm reads the output of sacct, with --parsable2 or in aligned columns, which the dashes below the
// header tell: a row per job, and rows of job steps, which are skipped. Model, batch size, epochs and
// dataset come from flags of the submitted command such as --batch-size 64; the model is the name of
// the job if no flag names it.
func (r *Reader) slurm(name string, in io.Reader) error {
	var header []string
	var dashes string
	return eachLine(in, func(number int, text []byte) {
		at, line := Place{name, number}, string(text)
		var row []string
		switch {
		case header == nil && strings.Contains(line, "|"):
			header = strings.Split(line, "|")
			return
		case header == nil:
			header = strings.Fields(line)
			return
		case dashes == "" && strings.HasPrefix(line, "---"):
			dashes = line
			return
		case dashes != "":
			row = alignedCells(line, dashes)
		default:
			row = strings.SplitN(line, "|", len(header))
		}
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
		r.slurmJob(at, cells)
	})
}

// alignedCells returns the cells of a row below dashes. A cell that sacct truncated, such as
// "resnet-lar+", is empty, but that of a state has only lost who cancelled the job.
func alignedCells(line, dashes string) (cells []string) {
	for column := range strings.FieldsSeq(dashes) {
		text := strings.TrimSpace(line[:min(len(column), len(line))])
		line = line[min(len(column)+1, len(line)):]
		if whole, isCut := strings.CutSuffix(text, "+"); isCut {
			text = ""
			if _, known := outcomeOf(whole); known {
				text = whole
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// sacctColumns are the columns of each field, the preferred one first.
var sacctColumns = map[string][]string{
	FieldRunID: {"JobIDRaw", "JobID"}, FieldUser: {"User"}, FieldCPUs: {"AllocCPUS", "NCPUS", "ReqCPUS"},
	FieldStartedAt: {"Start"}, FieldSeconds: {"ElapsedRaw", "Elapsed"},
	FieldNodes: {"NodeList"},
}

// slurmJob adds the job of a row.
func (r *Reader) slurmJob(at Place, cells map[string]string) {
	d := &runDraft{Place: at, named: cells["JobName"], values: map[string]string{}, called: map[string]string{}}
	for field, columns := range sacctColumns {
		for _, column := range columns {
			if v := cells[column]; v != "" && d.values[field] == "" {
				d.values[field], d.called[field] = v, column
			}
		}
	}
	if strings.Contains(d.values[FieldRunID], ".") {
		return // a step of a job
	}
	if d.values[FieldSeconds] == "" { // the time between start and end includes suspensions
		d.values[FieldEndedAt] = cells["End"]
	}
	state, _, _ := strings.Cut(cells["State"], " ") // CANCELLED by 1000
	outcome, known := outcomeOf(state)
	if !known || outcome == "" {
		r.reject(at, refuse(ReasonUnfinished, "State", "the job is %s: only ended jobs can be imported",
			strings.ToLower(clip(state))))
		return
	}
	d.values[FieldOutcome], d.isTimeout = state, state == "TIMEOUT"
	if minutes, err := strconv.ParseFloat(cells["TimelimitRaw"], 64); err == nil && minutes > 0 {
		d.limit = 60 * minutes
	} else if v, known := parseSeconds(cells["Timelimit"]); known && v > 0 {
		d.limit = v
	}
	d.values[FieldNodes] = strings.Join(expandHosts(d.values[FieldNodes]), ",")
	r.batchJob(d, cells["SubmitLine"])
}

// slurmDocument returns the jobs of the output of sacct --json, with the names of sacct's columns; nil for
// another document.
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
		flat := map[string]string{}
		flatten(flat, "", job)
		state, _, _ := strings.Cut(cmp.Or(flat["state.current"], flat["state"]), ",")
		cells := map[string]string{
			"JobIDRaw": flat["job_id"], "JobName": flat["name"], "State": state,
			"User":  cmp.Or(flat["user"], flat["association.user"]),
			"Start": flat["time.start"], "End": flat["time.end"], "ElapsedRaw": flat["time.elapsed"],
			"TimelimitRaw": cmp.Or(flat["time.limit.number"], flat["time.limit"]),
			"AllocCPUS":    flat["required.CPUs"], "NodeList": flat["nodes"], "SubmitLine": flat["submit_line"],
		}
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

// batchJob adds a job of a batch system, with the fields of its command.
func (r *Reader) batchJob(d *runDraft, command string) {
	flags := commandFlags(command)
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
		d.values[FieldModel] = d.named
	}
	r.addRun(d)
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
		of := map[string]string{}
		for word := range strings.FieldsSeq(m[3]) {
			if key, v, found := strings.Cut(word, "="); found {
				of[key] = v
			}
		}
		d := &runDraft{
			Place: Place{name, number}, named: of["jobname"], called: map[string]string{},
			values: map[string]string{
				FieldRunID: m[2], FieldUser: of["user"], FieldStartedAt: of["start"], FieldEndedAt: of["end"],
				FieldCPUs:    cmp.Or(of["resources_used.ncpus"], of["Resource_List.ncpus"]),
				FieldOutcome: endOf(cmp.Or(of["Exit_status"], "0") == "0"),
				FieldNodes:   strings.Join(pbsHosts(of["exec_host"]), ","),
			},
		}
		if v, known := parseSeconds(of["Resource_List.walltime"]); known && v > 0 {
			d.limit = v
			used, _ := parseSeconds(of["resources_used.walltime"])
			d.isTimeout = used >= v && d.values[FieldOutcome] == schemas.EventFailed
		}
		_, command, _ := strings.Cut(m[3], "ubmit_arguments=") // of PBS and Torque
		if quoted, isQuoted := strings.CutPrefix(command, `"`); isQuoted {
			command, _, _ = strings.Cut(quoted, `"`)
		}
		r.batchJob(d, command)
	})
}

// pbsHosts returns the hosts of a list such as n01/0*4+n02/0*4.
func pbsHosts(list string) (hosts []string) {
	for part := range strings.SplitSeq(list, "+") {
		host, _, _ := strings.Cut(part, "/")
		if host != "" && !slices.Contains(hosts, host) && len(hosts) < maxHosts {
			hosts = append(hosts, host)
		}
	}
	return hosts
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
