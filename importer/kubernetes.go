package importer

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// jobLabels are the labels of a pod that name its job, the preferred one last.
var jobLabels = []string{"app.kubernetes.io/name", "app", "job-name", "batch.kubernetes.io/job-name"}

// completePod adds the cells of a run to those of a pod or a job of Kubernetes, as kubectl get -o json prints it. Its
// training is the container whose command has a batch size or a number of epochs, or the first one.
func completePod(cells map[string]string) {
	form := "spec.containers.%d."
	if cells["spec.template.spec.containers.0.name"] != "" {
		form = "spec.template.spec.containers.%d."
	}
	main, isFound, n := "", false, 0
	for ; cells[fmt.Sprintf(form, n)+"name"] != ""; n++ {
		container := fmt.Sprintf(form, n)
		command := cells[container+"command"] + "," + cells[container+"args"]
		flags := commandFields(commandFlags(command))
		isTraining := flags[FieldBatchSize] != "" || flags[FieldEpochs] != ""
		if n == 0 || isTraining && !isFound {
			main, isFound, cells["command"] = container, isTraining, command
		}
	}
	if n == 0 {
		return // another object
	}
	cells["job_id"], cells["job_name"] = cells["metadata.name"], cells["metadata.name"]
	for _, label := range jobLabels {
		cells["job_name"] = cmp.Or(cells["metadata.labels."+label], cells["job_name"])
	}
	cells["devices"] = cells[main+"resources.limits.nvidia.com/gpu"]
	cells["cpus"] = kubeCPUs(cmp.Or(cells[main+"resources.requests.cpu"], cells[main+"resources.limits.cpu"]))
	if succeeded := cells["status.succeeded"]; succeeded != "" || cells["status.failed"] != "" { // a job
		cells["status.phase"] = endOf(numberOf(succeeded) > 0)
	}
	cells["status.phase"] = cmp.Or(cells["status.phase"], "running")
	for i := range n {
		status := fmt.Sprintf("status.containerStatuses.%d.", i)
		end := status + "state.terminated."
		if cells[end+"exitCode"] != "" && (n == 1 || cells[status+"name"] == cells[main+"name"]) {
			cells["status.startTime"] = cells[end+"startedAt"]
			cells["status.completionTime"] = cells[end+"finishedAt"]
			cells["status.phase"] = endOf(cells[end+"exitCode"] == "0")
		}
	}
}

// kubeCPUs returns an amount of CPU, such as 4 or 3500m, as whole CPUs; "" for none.
func kubeCPUs(amount string) string {
	milli, isMilli := strings.CutSuffix(amount, "m")
	v := numberOf(milli)
	if isMilli {
		v /= 1000
	}
	if !(v > 0) {
		return ""
	}
	return strconv.Itoa(int(math.Ceil(v)))
}
