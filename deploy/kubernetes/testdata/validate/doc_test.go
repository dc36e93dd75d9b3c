// Package validate reads the manifests of Kubernetes with the types of its API: a
// field that the API does not have, or of another type, fails. It also tests the resize of
// pods (package runner/resize) against an API server with these types. It is a module of its
// own, because nothing else of the house needs those types. The manifests and the package lie
// outside of it, where go test does not see that manifests change, hence -count=1:
//
//	go -C deploy/kubernetes/testdata/validate test -count=1 .
package validate
