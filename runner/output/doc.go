// Package output finds the epochs of a training job in the text that the job prints.
//
// # Use
//
// New returns a Parser for one of the Formats. Write takes the bytes of standard output or
// standard error as they arrive, and returns a Report for each epoch that they complete. Close
// returns the epochs that the end of the output completes. BigDL parses a log of BigDL alone,
// line by line.
//
// # Formats
//
// FormatJSON reads a JSON object per epoch:
//
//	{"epoch":1,"seconds":2.5,"loss":0.31,"accuracy":0.97,"validation_samples":597}
//
// Only epoch is required. Several common names are recognized for the other fields. A prefix of a
// logger may precede the object, and dictionaries of Python are read too, in particular those of the
// Trainer of Hugging Face. FormatBigDL reads the log of BigDL's optimizers. FormatText reads lines,
// tables and progress bars with the number of the epoch, and rounds of boosting; it knows words
// such as "val_acc", not frameworks. FormatPattern reads lines by a regular expression with named
// groups (see PatternExample). FormatAuto recognizes all formats but patterns; the first format that
// reports an epoch is used for the rest of the output.
//
// A Report has only what the output contains: a missing number is zero or nil, and a number
// outside its valid range is treated as missing. Timestamps in the output are never used.
//
// # Promises, test
//
// A Parser performs no I/O, keeps at most one line per stream in memory, and accepts any bytes.
// It is not safe for concurrent use. The tests cover each format with tables, and fuzz the
// parser with input that arrives in pieces of any size.
package output
