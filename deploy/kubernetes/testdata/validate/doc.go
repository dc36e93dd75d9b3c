// Package validate reads the manifests of Kubernetes with the types of its API: a
// field that the API does not have, or of another type, fails. It is a module of its
// own, because nothing else of the house needs those types. The manifests lie outside of
// it, where go test does not see that they change, hence -count=1:
//
//	go -C deploy/kubernetes/testdata/validate test -count=1 .
package validate
