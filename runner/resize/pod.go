package resize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// serviceAccountDir is where Kubernetes mounts the credentials of a pod.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

const (
	defaultInterval = time.Second
	restoreTimeout  = 5 * time.Second // bounds the time to withdraw a resize
	patchAttempts   = 3               // while other clients change the pod
)

// Pod is a container of a Kubernetes pod whose CPUs can be changed while it runs. Its service account
// needs the verbs get on pods and patch on pods/resize.
type Pod struct {
	Namespace, Name, Container string
	// Interval is the time between two readings of the status; 0 means one second.
	Interval time.Duration

	server      string // URL of the API server
	credentials string // directory with the token
	client      *http.Client
}

// ThisPod returns the container that this process runs in. The pod's manifest must set POD_NAME and
// CONTAINER_NAME; the namespace is that of the service account.
func ThisPod() (*Pod, error) {
	return ThisPodWith(serviceAccountDir)
}

// ThisPodWith is ThisPod with a service account that is mounted at another directory.
func ThisPodWith(credentials string) (*Pod, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	p := &Pod{
		Name:        os.Getenv("POD_NAME"),
		Container:   os.Getenv("CONTAINER_NAME"),
		server:      "https://" + net.JoinHostPort(host, port),
		credentials: credentials,
	}
	if host == "" {
		return nil, errors.New("this process runs in no pod: KUBERNETES_SERVICE_HOST is not set")
	}
	if p.Name == "" {
		return nil, errors.New("POD_NAME is not set: the pod's manifest must set it")
	}
	if p.Container == "" {
		return nil, errors.New("CONTAINER_NAME is not set: the pod's manifest must set it")
	}
	namespace, err := os.ReadFile(filepath.Join(credentials, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	p.Namespace = strings.TrimSpace(string(namespace))
	p.client, err = newClient(credentials)
	return p, err
}

// Resize sets the CPU request of the container, and waits until the kubelet has applied it or refuses.
// A CPU limit changes in the same ratio, so that the QoS class of the pod stays. A resize that is not
// in force at the end of ctx, or that the kubelet refuses or defers, is withdrawn.
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
	now, err := p.call(ctx, http.MethodGet, "", nil)
	if err != nil {
		return err
	}
	current, err := now.resizable(p.Container)
	if err != nil {
		return err
	}

	wanted := current.scaledTo(cpus)
	patched, err := p.patch(ctx, wanted)
	if _, isRefused := errors.AsType[*apiError](err); isRefused {
		return err
	}
	if err == nil {
		err = p.await(ctx, patched, wanted)
	}
	if err == nil {
		return nil
	}
	// Otherwise the kubelet would apply the resize later, when the job no longer expects it.
	withdrawing, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if _, failed := p.patch(withdrawing, current); failed != nil {
		return fmt.Errorf("%w; withdraw the resize: %w", err, failed)
	}
	return err
}

// patch changes the CPU request of the container, and its limit if it has one. The API server has
// tried several times when it replies with a conflict, so patch waits before it tries again.
func (p *Pod) patch(ctx context.Context, wanted cpuAllocation) (*podObject, error) {
	patch := resizePatch{}
	patch.Spec.Containers = []containerResources{{Name: p.Container, Resources: wanted.resources()}}
	for attempt := 1; ; attempt++ {
		reply, err := p.call(ctx, http.MethodPatch, "/resize", &patch)
		refusal, _ := errors.AsType[*apiError](err)
		if refusal == nil || refusal.code != http.StatusConflict || attempt == patchAttempts {
			return reply, err
		}
		if p.wait(ctx) != nil {
			return nil, err
		}
	}
}

// await reads the status of the pod until the resize is in force. The status in the reply to a patch
// is older than the patch, which its generation shows.
func (p *Pod) await(ctx context.Context, patched *podObject, wanted cpuAllocation) error {
	generation := patched.Metadata.Generation
	for now := patched; ; {
		isInForce, err := now.isInForce(p.Container, wanted, generation)
		if isInForce || err != nil {
			return err
		}
		if err := p.wait(ctx); err != nil {
			return fmt.Errorf("not in force yet: %w", err)
		}
		if now, err = p.call(ctx, http.MethodGet, "", nil); err != nil {
			return err
		}
	}
}

// wait waits until the pod may be read again.
func (p *Pod) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cmp.Or(p.Interval, defaultInterval)):
		return nil
	}
}
