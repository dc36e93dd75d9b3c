//go:build linux && amd64 && !noengine

package engine

// hosted reports whether this build can run the engine.
const hosted = true
