package importer

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// kubeObject is what an import reads of a pod or a job, besides its plain fields, as kubectl get -o json
// prints it.
type kubeObject struct {
	Kind  string
	Items []json.RawMessage
	Spec  struct {
		Containers []kubeContainer
		Template   struct {
			Spec struct{ Containers []kubeContainer }
		}
	}
	Status struct {
		Succeeded, Failed int
		ContainerStatuses []struct {
			Name  string
			State struct{ Terminated map[string]json.RawMessage }
		}
	}
}

type kubeContainer struct {
	Name          string
	Command, Args []string
	Resources     struct{ Requests, Limits map[string]string }
}

// jobLabels are the labels of a pod that name its job, the preferred one last.
var jobLabels = []string{"app.kubernetes.io/name", "app", "job-name", "batch.kubernetes.io/job-name"}

// podsOf returns the cells of the pods or jobs in a document; nil if it has none.
func podsOf(document []byte) (jobs []map[string]string) {
	var list kubeObject
	if json.Unmarshal(document, &list) != nil || list.Kind == "" {
		return nil
	}
	for _, item := range append(list.Items, document) {
		var o kubeObject
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &o) != nil || json.Unmarshal(item, &fields) != nil {
			continue
		}
		if containers := slices.Concat(o.Spec.Containers, o.Spec.Template.Spec.Containers); len(containers) > 0 {
			cells := map[string]string{}
			flatten(cells, "", fields)
			cells["job_id"], cells["job_name"] = cells["metadata.name"], cells["metadata.name"]
			for _, label := range jobLabels {
				cells["job_name"] = cmp.Or(cells["metadata.labels."+label], cells["job_name"])
			}
			o.job(cells, containers)
			jobs = append(jobs, cells)
		}
	}
	return jobs
}

// job adds the cells of a pod or a job. Its training is the container whose command has a batch size or a
// number of epochs, or the only one.
func (o *kubeObject) job(cells map[string]string, containers []kubeContainer) {
	isTraining := func(c kubeContainer) bool {
		found := commandFields(commandFlags(c.line()))
		return found[FieldBatchSize] != "" || found[FieldEpochs] != ""
	}
	main := containers[max(slices.IndexFunc(containers, isTraining), 0)]
	cells["command"], cells["devices"] = main.line(), main.Resources.Limits["nvidia.com/gpu"]
	switch {
	case cells["status.phase"] != "":
	case o.Status.Succeeded+o.Status.Failed > 0: // a job
		cells["status.phase"] = endOf(o.Status.Succeeded > 0)
	default:
		cells["status.phase"] = "running"
	}
	for _, s := range o.Status.ContainerStatuses {
		if end := s.State.Terminated; end != nil && (s.Name == main.Name || len(containers) == 1) {
			cells["status.startTime"] = textOf(end["startedAt"])
			cells["status.completionTime"] = textOf(end["finishedAt"])
			cells["status.phase"] = endOf(string(end["exitCode"]) == "0")
		}
	}
	for _, amount := range []string{main.Resources.Limits["cpu"], main.Resources.Requests["cpu"]} {
		if n := kubeCPUs(amount); n != "" {
			cells["cpus"] = n
		}
	}
}

func (c *kubeContainer) line() string { return strings.Join(slices.Concat(c.Command, c.Args), " ") }

// kubeCPUs returns an amount of CPU, such as 4 or 3500m, as whole CPUs; "" for none.
func kubeCPUs(amount string) string {
	milli, isMilli := strings.CutSuffix(amount, "m")
	v, err := strconv.ParseFloat(milli, 64)
	if err != nil || !(v > 0) {
		return ""
	}
	if isMilli {
		v /= 1000
	}
	return strconv.Itoa(int(math.Ceil(v)))
}
