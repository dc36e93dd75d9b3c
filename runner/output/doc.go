// Package output finds the epochs of a training job in the text that the job prints.
//
// New returns a Parser. SetEpochs sets the number of requested epochs. Write takes the bytes of standard
// output or standard error as they arrive, and returns a report for each epoch that they complete. Close
// returns the epochs that the end of the output completes. A Log reads the files of loggers, and Values the
// measurements of the instrumentation, with the same vocabulary.
//
// A Parser uses the user's regular expression with named groups, if there is one (see PatternExample).
// Otherwise it reads any output by its structure, by words and forms of numbers, without knowledge of programs:
// lines.go, scan.go and number.go read the fields of a line, words.go has the vocabulary, follow.go groups the
// lines by the number of the epoch, and choose.go chooses the results of a group. Lines of Courier's own format
// have no other fields than these, of which only epoch is required:
//
//	{"epoch":1,"seconds":2.5,"loss":0.31,"accuracy":0.97,"validation_samples":597,"batch_size":32,"cpus":2,
//	"loaders":4}
//
// A value that is absent costs little, and a false one much. What is not in the vocabulary is not
// recorded, and nothing is reported before the behaviour of a counter has confirmed it. A missing number is
// zero or nil, and one outside its valid range is treated as missing. Timestamps in the output are never used.
//
// A Parser performs no I/O and accepts any bytes. Its memory is bounded: one line per stream of at most
// 8 KiB, the blocks that wait for confirmation, and tables with limits. It is not safe for concurrent use.
// The tests read forms of output that were written by hand and the shared folders of logs, and fuzz the
// parser with input that arrives in pieces of any size.
package output
