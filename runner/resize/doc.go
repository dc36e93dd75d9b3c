// Package resize changes the CPUs of running containers: a Docker container with docker update, and
// the container of a Kubernetes pod in place, with the subresource resize of the API (stable since
// Kubernetes 1.35).
//
// A Resizer keeps no state. Resize returns when the new CPUs are in force, or with an error that
// says why they are not. Processes outside containers are resized by their cgroup, see package
// usage.
package resize
