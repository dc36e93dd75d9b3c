// Package live plays queues of jobs against the advisor itself, on its real bus, in virtual time. Only
// the node is simulated. It has tests only, and is a package of its own because the clock of its tests
// must not meet the connections of others.
package live
