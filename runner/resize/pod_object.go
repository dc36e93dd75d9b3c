package resize

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// podObject has the fields of a v1.Pod that a resize needs.
type podObject struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Containers []containerResources `json:"containers"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64                `json:"observedGeneration"`
		Conditions         []podCondition       `json:"conditions"`
		ContainerStatuses  []containerResources `json:"containerStatuses"`
	} `json:"status"`
}

// containerResources are the resources that a container has or should have.
type containerResources struct {
	Name         string         `json:"name"`
	Resources    *resources     `json:"resources,omitempty"`
	ResizePolicy []resizePolicy `json:"resizePolicy,omitempty"`
}

type resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

type resizePolicy struct {
	ResourceName  string `json:"resourceName"`
	RestartPolicy string `json:"restartPolicy"`
}

type podCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// resizePatch is the strategic merge patch of the subresource resize.
type resizePatch struct {
	Spec struct {
		Containers []containerResources `json:"containers"`
	} `json:"spec"`
}

// resizable returns the CPUs of a container, or an error if it cannot be resized while it runs. A
// container without a CPU request is refused, because a resize cannot remove the request again.
func (o *podObject) resizable(container string) (cpuAllocation, error) {
	c := find(o.Spec.Containers, container)
	if c == nil {
		return cpuAllocation{}, errors.New("the pod has no such container: correct CONTAINER_NAME")
	}
	for _, policy := range c.ResizePolicy {
		if policy.ResourceName == "cpu" && policy.RestartPolicy == "RestartContainer" {
			return cpuAllocation{}, errors.New("its resizePolicy would restart the container: " +
				"set restartPolicy of the resource cpu to NotRequired in the pod's manifest")
		}
	}
	current, err := c.Resources.cpus()
	if err == nil && current.request == 0 {
		err = errors.New("it has no CPU request: set resources.requests.cpu in the pod's manifest")
	}
	return current, err
}

// isInForce reports whether the container has the wanted CPUs. The error says why the kubelet does
// not apply the resize: the node is too small (Infeasible) or full (Deferred), or it failed (Error).
// A status or condition that is older than the generation of the resize describes a previous one.
func (o *podObject) isInForce(container string, wanted cpuAllocation, generation int64) (bool, error) {
	if o.Status.ObservedGeneration < generation {
		return false, nil
	}
	isUnderWay := false
	for _, c := range o.Status.Conditions {
		isStale := c.ObservedGeneration != 0 && c.ObservedGeneration < generation
		if c.Status != "True" || isStale {
			continue
		}
		isRunning := c.Type == "PodResizeInProgress"
		if c.Type == "PodResizePending" || isRunning && c.Reason == "Error" {
			return false, fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		isUnderWay = isUnderWay || isRunning
	}
	c := find(o.Status.ContainerStatuses, container)
	if isUnderWay || c == nil {
		return false, nil
	}
	actual, err := c.Resources.cpus()
	return err == nil && actual == wanted, err
}

func find(containers []containerResources, name string) *containerResources {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}

// cpuAllocation is the CPU request and limit of a container in thousandths of a CPU; 0 means none.
type cpuAllocation struct {
	request, limit int64
}

// scaledTo returns the allocation for a number of CPUs. The limit keeps its ratio to the request, and
// the two stay equal or different: both decide the QoS class, which a resize must not change.
func (a cpuAllocation) scaledTo(cpus uint32) cpuAllocation {
	scaled := cpuAllocation{request: int64(cpus) * 1000}
	switch {
	case a.limit == a.request:
		scaled.limit = scaled.request
	case a.limit > 0:
		ratio := float64(a.limit) / float64(a.request)
		limit := int64(math.Round(ratio * float64(scaled.request)))
		scaled.limit = max(limit, scaled.request+1)
	}
	return scaled
}

func (a cpuAllocation) resources() *resources {
	r := &resources{Requests: map[string]string{"cpu": formatCPU(a.request)}}
	if a.limit > 0 {
		r.Limits = map[string]string{"cpu": formatCPU(a.limit)}
	}
	return r
}

func (r *resources) cpus() (a cpuAllocation, err error) {
	if r == nil {
		return a, nil
	}
	if a.request, err = parseCPU(r.Requests["cpu"]); err != nil {
		return a, err
	}
	a.limit, err = parseCPU(r.Limits["cpu"])
	return a, err
}

// parseCPU reads a quantity of CPUs, such as 500m or 2, in thousandths of a CPU.
func parseCPU(quantity string) (int64, error) {
	if quantity == "" {
		return 0, nil
	}
	number, isMilli := strings.CutSuffix(quantity, "m")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 || value > math.MaxInt32 || math.IsNaN(value) {
		return 0, fmt.Errorf("unreadable quantity of CPUs %q", quantity)
	}
	if !isMilli {
		value *= 1000
	}
	return int64(math.Ceil(value)), nil
}

func formatCPU(milli int64) string {
	if milli%1000 == 0 {
		return strconv.FormatInt(milli/1000, 10)
	}
	return strconv.FormatInt(milli, 10) + "m"
}
