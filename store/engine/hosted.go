//go:build linux && amd64 && !noengine

package engine

// libraryHosted says whether this build can load the engine library.
const libraryHosted = true
