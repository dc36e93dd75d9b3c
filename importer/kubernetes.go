package importer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// jobLabels are the labels of a pod that name its job, the preferred one last.
var jobLabels = []string{"app.kubernetes.io/name", "app", "job-name", "batch.kubernetes.io/job-name"}

// Names of the cells of the containers of a pod, or of the templates of its job, and of how many pods there are.
var (
	containerName = regexp.MustCompile(`^(spec\.(?:.+\.)?containers\.\d+\.)name$`)
	podCount      = regexp.MustCompile(`^spec\.(?:.+\.)?(?:replicas|parallelism)$`)
)

// podsCell is the name of the cell with the number of pods of a job.
const podsCell = "pods of the job"

// completePod adds the cells of a run to those of a pod or a job of Kubernetes, also of its operators, as kubectl get
// -o json prints it. Its training is the container whose command has a batch size or a number of epochs, or the
// first one.
func completePod(cells map[string]string) {
	main, isFound, n, pods := "", false, 0, 0.0
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		if podCount.MatchString(name) {
			pods += numberOf(cells[name])
		}
		if base, isName := strings.CutSuffix(name, ".name"); isName && cells[name] == "WORLD_SIZE" { // of one of them
			pods = max(pods, numberOf(cells[base+".value"]))
		}
		m := containerName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		command := cells[m[1]+"command"] + "," + cells[m[1]+"args"]
		flags := commandFields(commandFlags(command))
		isTraining := flags[FieldBatchSize] != "" || flags[FieldEpochs] != ""
		if n++; n == 1 || isTraining && !isFound {
			main, isFound, cells["command"] = m[1], isTraining, command
		}
	}
	if n == 0 {
		return // another object
	}
	cells["job_id"], cells["job_name"] = cells["metadata.name"], cells["metadata.name"]
	for _, label := range jobLabels {
		cells["job_name"] = cmp.Or(cells["metadata.labels."+label], cells["job_name"])
	}
	if pods > 1 {
		cells[podsCell] = strconv.FormatFloat(pods, 'f', -1, 64)
	} else {
		cells["devices"] = cells[main+"resources.limits.nvidia.com/gpu"]
		cells["cpus"] = kubeCPUs(cmp.Or(cells[main+"resources.requests.cpu"], cells[main+"resources.limits.cpu"]))
	}
	for i := 0; cells[fmt.Sprintf("status.conditions.%d.type", i)] != ""; i++ {
		condition := fmt.Sprintf("status.conditions.%d.", i)
		if outcome, _ := outcomeOf(cells[condition+"type"]); outcome != "" && cells[condition+"status"] == "True" {
			cells["status.phase"] = outcome
		}
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
