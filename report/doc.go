// Package report writes reports for users: texts for a terminal, and self-contained HTML pages with
// SVG plots. It formats messages and the state of a cluster, and makes no
// decisions.
//
// A function that is named after a message writes it as text, such as Advice or Score. A type with
// a WriteText, WriteJSON or WriteHTML method combines several sources, such as Life, the history of
// the regressors in the log. Text from the log is made safe for terminals and escaped in HTML. The
// package keeps no state, and its functions may be called concurrently.
package report
