package output

import (
	"bytes"
	"regexp"
	"slices"
)

// memoryMessages matches messages about missing memory: of Python, NumPy, PyTorch, TensorFlow, JAX, the JVM, C++, the
// kernel and Kubernetes. Each contains one of memoryParts, which are searched first, because matching each line
// is slow.
var (
	memoryParts    = [][]byte{[]byte("emory"), []byte("EMORY"), []byte("EXHAUSTED"), []byte("OOM"), []byte("bad_alloc")}
	memoryMessages = regexp.MustCompile(`(?i)out of memory|outofmemory|out_of_memory|memoryerror|bad_alloc|` +
		`cannot allocate memory|unable to allocate|failed to allocate memory|not enough memory|oom when allocating|` +
		`oomkilled|oom-kill|resource_exhausted`)
)

// isOutOfMemory reports whether a line says that memory is missing.
func isOutOfMemory(line []byte) bool {
	line = line[:min(len(line), maxExcerptBytes)]
	hasPart := func(part []byte) bool { return bytes.Contains(line, part) }
	return slices.ContainsFunc(memoryParts, hasPart) && memoryMessages.Match(line)
}

// memoryLines is the number of last lines in which a message about missing memory explains a failure.
const memoryLines = 100

// OutOfMemory returns the last line that says that memory is missing, if it is one of the last lines.
func (p *Parser) OutOfMemory() (line string, ok bool) {
	return excerpt(p.noMemory), len(p.noMemory) > 0 && p.count-p.noMemoryAt <= memoryLines
}
