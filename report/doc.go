// Package report writes messages and the state of a cluster as text for a terminal. It makes no
// decisions.
//
// A function that is named after a message writes it, such as Advice or Score. A type with a
// WriteText method combines several sources, such as RegressorHistory. Text from the log is made
// safe for terminals. The package keeps no state, and its functions may be called concurrently.
package report
