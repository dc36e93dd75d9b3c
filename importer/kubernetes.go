package importer

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// kubeObject is what an import reads of a pod or a job, as kubectl get -o json prints it.
type kubeObject struct {
	Kind     string       `json:"kind"`
	Items    []kubeObject `json:"items"`
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		kubePod
		Template struct {
			Spec kubePod `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Phase             string `json:"phase"`
		StartTime         string `json:"startTime"`
		CompletionTime    string `json:"completionTime"`
		Succeeded         int    `json:"succeeded"`
		Failed            int    `json:"failed"`
		ContainerStatuses []struct {
			Name  string `json:"name"`
			State struct {
				Terminated *struct {
					ExitCode   int    `json:"exitCode"`
					StartedAt  string `json:"startedAt"`
					FinishedAt string `json:"finishedAt"`
				} `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

type kubePod struct {
	NodeName   string          `json:"nodeName"`
	Containers []kubeContainer `json:"containers"`
}

type kubeContainer struct {
	Name      string   `json:"name"`
	Command   []string `json:"command"`
	Args      []string `json:"args"`
	Resources struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	} `json:"resources"`
}

// podsOf returns the rows of the pods or jobs in a document, nil if it has none.
func podsOf(document []byte) (rows []map[string]string) {
	var o kubeObject
	if json.Unmarshal(document, &o) != nil || o.Kind == "" {
		return nil
	}
	for _, item := range append(o.Items, o) {
		if pod := slices.Concat(item.Spec.Containers, item.Spec.Template.Spec.Containers); len(pod) > 0 {
			rows = append(rows, item.row(pod))
		}
	}
	return rows
}

// row returns the fields of a pod or a job. Its training is the container whose command has a batch
// size or a number of epochs, or the only one.
func (o *kubeObject) row(containers []kubeContainer) map[string]string {
	main, flags := containers[0], map[string]string{}
	for _, c := range containers {
		found := commandFields(commandFlags(strings.Join(slices.Concat(c.Command, c.Args), " ")))
		if found[FieldBatchSize] != "" || found[FieldEpochs] != "" {
			main, flags = c, found
			break
		}
	}
	row := map[string]string{
		FieldRunID: o.Metadata.Name, FieldNodes: o.Spec.NodeName, FieldOutcome: o.Status.Phase,
		FieldStartedAt: o.Status.StartTime, FieldEndedAt: o.Status.CompletionTime,
		FieldModel: o.Metadata.Name,
	}
	for _, label := range []string{"app.kubernetes.io/name", "app", "job-name", "batch.kubernetes.io/job-name"} {
		if v := o.Metadata.Labels[label]; v != "" {
			row[FieldModel] = v
		}
	}
	if o.Status.Phase == "" { // a job
		row[FieldOutcome] = "running"
		if o.Status.Succeeded+o.Status.Failed > 0 {
			row[FieldOutcome] = endOf(o.Status.Succeeded > 0)
		}
	}
	for _, s := range o.Status.ContainerStatuses {
		if end := s.State.Terminated; end != nil && (s.Name == main.Name || len(containers) == 1) {
			row[FieldStartedAt], row[FieldEndedAt] = end.StartedAt, end.FinishedAt
			row[FieldOutcome] = endOf(end.ExitCode == 0)
		}
	}
	for _, amount := range []string{main.Resources.Limits["cpu"], main.Resources.Requests["cpu"]} {
		if n := kubeCPUs(amount); n != "" {
			row[FieldCPUs] = n
		}
	}
	maps.Copy(row, flags)
	return row
}

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
