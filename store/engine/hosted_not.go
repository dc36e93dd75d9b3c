//go:build !linux || !amd64 || noengine

package engine

// libraryHosted reports whether this build can load the engine library.
const libraryHosted = false
