package resize

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// serviceAccountDir is where Kubernetes mounts the credentials of a pod.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Pod is a container of a Kubernetes pod whose CPUs can be changed while it runs. Its service account
// needs the verbs get on pods and patch on pods/resize.
type Pod struct {
	Namespace, Name, Container string

	server      string // URL of the API server
	credentials string // directory with the token
	client      *http.Client
	interval    time.Duration // between two readings of the status
}

// ThisPod returns the container that this process runs in. The pod's manifest must set POD_NAME and
// CONTAINER_NAME; the namespace is that of the service account.
func ThisPod() (*Pod, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	p := &Pod{
		Name:        os.Getenv("POD_NAME"),
		Container:   os.Getenv("CONTAINER_NAME"),
		server:      "https://" + net.JoinHostPort(host, port),
		credentials: serviceAccountDir,
		interval:    time.Second,
	}
	if host == "" {
		return nil, errors.New("this process runs in no pod: KUBERNETES_SERVICE_HOST is not set")
	}
	for name, value := range map[string]string{"POD_NAME": p.Name, "CONTAINER_NAME": p.Container} {
		if value == "" {
			return nil, fmt.Errorf("%s is not set: the pod's manifest must set it", name)
		}
	}
	namespace, err := os.ReadFile(filepath.Join(p.credentials, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	p.Namespace = strings.TrimSpace(string(namespace))

	ca, err := os.ReadFile(filepath.Join(p.credentials, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s/ca.crt has no certificate", p.credentials)
	}
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return p, nil
}

// podStatus is the part of a v1.Pod that says whether a resize is in force.
type podStatus struct {
	Spec struct {
		Containers []containerResources `json:"containers"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		ContainerStatuses []containerResources `json:"containerStatuses"`
	} `json:"status"`
}

// containerResources are the resources that a container has or should have.
type containerResources struct {
	Name      string     `json:"name"`
	Resources *resources `json:"resources,omitempty"`
}

type resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// resizePatch is the strategic merge patch of the subresource resize.
type resizePatch struct {
	Spec struct {
		Containers []containerResources `json:"containers"`
	} `json:"spec"`
}

// Resize sets the CPU request of the container, and its limit if it has one, and waits until the
// kubelet has applied them or refuses. It ends with ctx.
func (p *Pod) Resize(ctx context.Context, cpus uint32) error {
	if err := p.resize(ctx, cpus); err != nil {
		return fmt.Errorf("resize container %s of pod %s/%s to %d CPUs: %w",
			p.Container, p.Namespace, p.Name, cpus, err)
	}
	return nil
}

func (p *Pod) resize(ctx context.Context, cpus uint32) error {
	if cpus < 1 {
		return errors.New("want 1 or more")
	}
	var now podStatus
	if err := p.call(ctx, http.MethodGet, "", nil, &now); err != nil {
		return err
	}
	c := find(now.Spec.Containers, p.Container)
	if c == nil {
		return errors.New("the pod has no such container")
	}
	request, limit := "", ""
	if c.Resources != nil {
		request, limit = c.Resources.Requests["cpu"], c.Resources.Limits["cpu"]
	}

	quantity, newLimit := fmt.Sprint(cpus), ""
	if limit != "" {
		newLimit = quantity
	}
	now = podStatus{}
	if err := p.patch(ctx, quantity, newLimit, &now); err != nil {
		return err
	}
	if err := p.await(ctx, &now, quantity); err != nil {
		return errors.Join(err, p.restore(ctx, request, limit))
	}
	return nil
}

// patch changes the CPU request of the container, and its limit unless that is empty.
func (p *Pod) patch(ctx context.Context, request, limit string, reply *podStatus) error {
	wanted := &resources{Requests: map[string]string{"cpu": request}}
	if limit != "" {
		wanted.Limits = map[string]string{"cpu": limit}
	}
	patch := resizePatch{}
	patch.Spec.Containers = []containerResources{{Name: p.Container, Resources: wanted}}
	return p.call(ctx, http.MethodPatch, "/resize", &patch, reply)
}

// restoreTimeout bounds the time to withdraw a resize.
const restoreTimeout = 5 * time.Second

// restore withdraws a resize that is not in force. Otherwise the kubelet would apply it later, when
// the job no longer expects it.
func (p *Pod) restore(ctx context.Context, request, limit string) error {
	if request == "" {
		return nil // a resize cannot remove a request
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if err := p.patch(ctx, request, limit, &podStatus{}); err != nil {
		return fmt.Errorf("withdraw the resize: %w", err)
	}
	return nil
}

// await reads the status of the pod until the resize is in force.
func (p *Pod) await(ctx context.Context, now *podStatus, quantity string) error {
	for {
		isInForce, err := now.isInForce(p.Container, quantity)
		if isInForce || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in force yet: %w", ctx.Err())
		case <-time.After(p.interval):
		}
		*now = podStatus{}
		if err := p.call(ctx, http.MethodGet, "", nil, now); err != nil {
			return err
		}
	}
}

// isInForce reports whether the container has the requested CPUs. The error says why the kubelet does
// not apply the resize: the node is too small (Infeasible) or full (Deferred), or it failed (Error).
func (s *podStatus) isInForce(container, quantity string) (bool, error) {
	for _, c := range s.Status.Conditions {
		isPending := c.Type == "PodResizePending" && c.Status == "True"
		isFailed := c.Type == "PodResizeInProgress" && c.Status == "True" && c.Reason == "Error"
		if isPending || isFailed {
			return false, fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		if c.Type == "PodResizeInProgress" && c.Status == "True" {
			return false, nil
		}
	}
	c := find(s.Status.ContainerStatuses, container)
	return c != nil && c.Resources != nil && c.Resources.Requests["cpu"] == quantity, nil
}

func find(containers []containerResources, name string) *containerResources {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}

// maxReply bounds the bytes of a reply that are read.
const maxReply = 4 << 20

// call sends a request for the pod or one of its subresources, and decodes the reply.
func (p *Pod) call(ctx context.Context, method, subresource string, body, reply any) error {
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s%s",
		p.server, url.PathEscape(p.Namespace), url.PathEscape(p.Name), subresource)
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return err
	}
	// The token is read for each request, because Kubernetes replaces it.
	token, err := os.ReadFile(filepath.Join(p.credentials, "token"))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}

	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = response.Status
		}
		return fmt.Errorf("the API server refused %s: %s", method, status.Message)
	}
	return json.Unmarshal(text, reply)
}
