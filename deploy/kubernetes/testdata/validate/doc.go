// Package validate reads the manifests of Kubernetes with the types of its API: a
// field that the API does not have, or of another type, fails. It is a module of its
// own, because nothing else of the house needs those types:
//
//	go -C deploy/kubernetes/testdata/validate test .
package validate
