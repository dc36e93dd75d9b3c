// Package python holds the Python client of Courier, and the instrumentation that courier run adds to
// Python programs. Its Go test builds the wheel, and checks that the events that it publishes are those
// of the contract.
package python

import "embed"

// Instrument has the files of the package courier_instrument, in InstrumentFolder.
//
//go:embed src/courier_instrument/*.py
var Instrument embed.FS

// InstrumentFolder is the folder of the files of Instrument.
const InstrumentFolder = "src/courier_instrument"
