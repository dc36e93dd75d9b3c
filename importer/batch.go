package importer

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"courier/runner/output"
)

// SacctFields are the columns of sacct that an import reads. SubmitLine is the last one, because it
// may contain the separator.
func SacctFields() []string {
	return []string{
		"JobIDRaw", "JobName", "User", "State", "Start", "End", "ElapsedRaw", "TimelimitRaw",
		"AllocCPUS", "NodeList", "SubmitLine",
	}
}

// complete sets the fields that no column has. They come from the flags of the command; a job of a batch
// system without a model has its name as the model.
func (t *table) complete(d *runDraft, cells map[string]string) {
	flags := commandFlags(d.values[FieldCommand])
	batchName := t.columns[FieldBatchSize]
	for field, name := range commandFields(flags) {
		if t.isRequested(field) || d.values[field] != "" {
			continue
		}
		if d.values[field] = flags[name]; field == FieldBatchSize {
			batchName = name
		}
	}
	for field, name := range t.requested {
		if v := flags[name]; v != "" && t.columns[field] == "" {
			d.values[field] = v
		}
	}
	if t.isOfJobs() && d.text(FieldModel) == "" {
		d.values[FieldModel] = d.values[FieldJobName]
	}
	isPart := cells[podsCell] != "" || perDevice.MatchString(batchName) &&
		(devices(d.values[FieldDevices]) != 1 || devices(d.values[FieldAccumulation]) > 1)
	if isPart && !t.isRequested(FieldBatchSize) {
		d.values[FieldBatchSize] = cmp.Or(t.o.Defaults[FieldBatchSize], partOfBatch)
	}
}

// partOfBatch replaces the batch size of one of several devices or passes: the batch size of the run is unknown.
const partOfBatch = "of one device"

// perDevice matches the name of the batch size of one device.
var perDevice = regexp.MustCompile(`(?i)per[_-]?(?:device|gpu)`)

// deviceCount matches a number of devices or passes, such as 4, gpu:a100:4, or cpu=8,gres/gpu=4.
var deviceCount = regexp.MustCompile(`(?:^|gpu(?:[:=][a-z]\w*)?[:=])(\d+)`)

// devices returns the number of devices or passes in a text; 0: unknown.
func devices(text string) float64 {
	if m := deviceCount.FindStringSubmatch(text); m != nil {
		return numberOf(m[1])
	}
	return 0
}

// isOfJobs reports whether the rows are jobs of a batch system: their IDs are numbers, and a name may be that of
// the model.
func (t *table) isOfJobs() bool {
	id := compact(t.columns[FieldRunID])
	return id == "jobid" || id == "jobidraw" || id == "jobnumber"
}

// isStep reports whether a row is a step of the last job: sacct prints 7.batch and 7.0 after 7.
func (t *table) isStep(id string) bool {
	if job, _, isPart := strings.Cut(id, "."); isPart && job == t.lastJob {
		return true
	}
	t.lastJob = id
	return false
}

// commandFields maps fields of a run to the names of the flags that set them.
func commandFields(flags map[string]string) map[string]string {
	n := namesOf(flags)
	found := map[string]string{}
	for _, f := range fieldNames {
		switch f.field {
		case FieldModel, FieldDataset, FieldBatchSize, FieldEpochs, FieldTrainingSamples, FieldDevices,
			FieldAccumulation:
			if name := n.known(f.field, f.known); name != "" {
				found[f.field] = name
			}
		}
	}
	for short, field := range map[string]string{"b": FieldBatchSize, "e": FieldEpochs} {
		if found[field] == "" && mayBe(field, flags[short]) {
			found[field] = short
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
	if strings.Contains(line, ",-") {
		line = strings.ReplaceAll(line, ",", " ") // a list in JSON
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

// rule is a line between the jobs of qacct.
var rule = regexp.MustCompile(`^={8,}$`)

// blocks reads a row per block of lines with a name and a value each, below a rule, as qacct prints them.
func (t *table) blocks(in *bufio.Reader) error {
	block := record{}
	return eachLine(io.MultiReader(in, strings.NewReader("\n========")), func(number int, text []byte) {
		if !rule.Match(text) {
			key, value, _ := strings.Cut(string(text), " ")
			block.cells[key] = cell(value)
			return
		}
		if len(block.cells) > 0 {
			t.add(block)
		}
		block = record{line: number + 1, cells: map[string]string{}}
	})
}

// pbsLine is an accounting record of PBS: 03/04/2024 11:00:00;E;123.server;user=ada queue=q ...
var pbsLine = regexp.MustCompile(`^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Z]);([^;]+);(.*)$`)

// pbs reads the accounting log of PBS: a row per ended job (record E); others are skipped.
func (t *table) pbs(in *bufio.Reader) error {
	return eachLine(in, func(number int, text []byte) {
		switch m := pbsLine.FindStringSubmatch(string(text)); {
		case m == nil:
			t.add(record{line: number, broken: refuse(ReasonUnreadable, "",
				"want an accounting record of PBS, such as 03/04/2024 11:00:00;E;123.server;user=ada")})
		case m[1] == "E":
			t.add(record{line: number, cells: pbsJob(m[2], m[3])})
		}
	})
}

// pbsJob returns the cells of a job from the words name=value of its record.
func pbsJob(id, words string) map[string]string {
	cells := map[string]string{}
	for word := range strings.FieldsSeq(words) {
		if key, v, found := strings.Cut(word, "="); found {
			cells[key] = v
		}
	}
	cells["job_id"] = id
	cells["state"] = endOf(cmp.Or(cells["Exit_status"], "0") == "0")
	limit, _ := output.ParseSeconds(cells["Resource_List.walltime"])
	used, _ := output.ParseSeconds(cells["resources_used.walltime"])
	if limit > 0 && used >= limit && cells["Exit_status"] != "0" {
		cells["state"] = "timeout"
	}
	cells["exec_host"] = pbsCores.ReplaceAllString(cells["exec_host"], ",")
	_, command, _ := strings.Cut(words, "ubmit_arguments=") // of PBS and Torque
	if quoted, isQuoted := strings.CutPrefix(command, `"`); isQuoted {
		command, _, _ = strings.Cut(quoted, `"`)
	}
	cells["command"] = command
	return cells
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
			first, last, _ := strings.Cut(part, "-")
			from, err := strconv.ParseUint(first, 10, 32)
			until, errUntil := strconv.ParseUint(cmp.Or(last, first), 10, 32)
			if err != nil || errUntil != nil { // a name
				hosts = append(hosts, m[1]+part+m[3])
				continue
			}
			for n := from; n <= until && len(hosts) < maxHosts; n++ { // with leading zeros
				hosts = append(hosts, fmt.Sprintf("%s%0*d%s", m[1], len(first), n, m[3]))
			}
		}
	}
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return host == "" })
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return hosts[:min(len(hosts), maxHosts)]
}
