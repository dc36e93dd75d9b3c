package collector

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// cpuModelOf returns the model of a node's processors, from the text of
// /proc/cpuinfo: all models, where they differ. Systems that name none (most ARM)
// have "": part numbers are not made into names.
func cpuModelOf(cpuinfo string) string {
	const longest = 128
	var models []string
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "cpu model", "cpu": // x86; MIPS; POWER
			model := strings.ToValidUTF8(strings.Join(strings.FieldsFunc(value, unprintable), " "), "")
			if model != "" && !slices.Contains(models, model) {
				models = append(models, model)
			}
		}
	}
	all := strings.Join(models, " and ")
	return strings.ToValidUTF8(all[:min(len(all), longest)], "")
}

func unprintable(c rune) bool { return c <= ' ' || c == 0x7f }

// localCPUModel returns that of this node; "" if the system does not tell.
func localCPUModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return cpuModelOf(string(text))
}

// lastSamples returns the newest stored sample of each node that has one.
func lastSamples(ctx context.Context, b *bus.Bus, nodes ...string) map[string]bus.Record {
	ctx, found := context.WithCancel(ctx)
	defer found()
	o := bus.FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true, CaughtUp: found}
	for _, n := range nodes {
		o.Subjects = append(o.Subjects, schemas.NodeSubject(n, schemas.EventSample))
	}
	all := map[string]bus.Record{}
	// Follow ends with its ctx, and its handler has no error.
	_ = b.Follow(ctx, o, func(r bus.Record) error {
		if s, ok := r.Event.(*schemas.Sample); ok && ctx.Err() == nil {
			all[s.Node] = r
		}
		return nil
	})
	return all
}

// patienceForSamples bounds how much later a job starts because its nodes are
// looked up.
const patienceForSamples = time.Second

// lookUp notes what samples tell of the job's nodes.
func (j *job) lookUp(ctx context.Context, b *bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, patienceForSamples)
	defer cancel()
	for _, r := range lastSamples(ctx, b, j.o.Request.Nodes...) {
		j.fleet.Sample(r.Event.(*schemas.Sample))
	}
}

// hardware returns what is known of the job's nodes: of this one what it is, of all
// what their samples say, if they do not contradict.
func (j *job) hardware() []schemas.Hardware {
	nodes := j.result.Setting.Nodes
	told := make([]schemas.Hardware, len(nodes))
	for i, name := range nodes {
		if name == j.o.Node {
			told[i] = schemas.Hardware{Cores: j.mark.reading.cores(), CPUModel: localCPUModel()}
		}
	}
	return j.fleet.See(nodes, told, 0)
}
