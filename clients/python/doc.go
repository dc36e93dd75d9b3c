// Package python holds the Python client of Courier. Its Go test builds the wheel, and checks that
// the events that it publishes are those of the contract.
package python
