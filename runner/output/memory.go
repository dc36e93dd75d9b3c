package output

import "bytes"

// memoryMessages are parts of messages about missing memory, in lower case: of Python, NumPy, PyTorch,
// TensorFlow, JAX, the JVM, C++, the kernel and Kubernetes. Each such message contains one of
// memoryParts, which are searched first, because converting each line to lower case is slow.
var (
	memoryParts    = [][]byte{[]byte("emory"), []byte("EMORY"), []byte("EXHAUSTED"), []byte("OOM"), []byte("bad_alloc")}
	memoryMessages = [][]byte{
		[]byte("out of memory"), []byte("outofmemory"), []byte("out_of_memory"), []byte("memoryerror"),
		[]byte("cannot allocate memory"), []byte("unable to allocate"), []byte("failed to allocate memory"),
		[]byte("not enough memory"), []byte("oom when allocating"), []byte("oomkilled"), []byte("oom-kill"),
		[]byte("resource_exhausted"), []byte("bad_alloc"),
	}
)

// isOutOfMemory reports whether a line says that memory is missing.
func isOutOfMemory(line []byte) bool {
	line = line[:min(len(line), maxExcerptBytes)]
	isIn := func(parts [][]byte, line []byte) bool {
		for _, p := range parts {
			if bytes.Contains(line, p) {
				return true
			}
		}
		return false
	}
	return isIn(memoryParts, line) && isIn(memoryMessages, bytes.ToLower(line))
}

// memoryLines is the number of last lines in which a message about missing memory explains a failure.
const memoryLines = 100

// OutOfMemory returns the last line that says that memory is missing, if it is one of the last lines.
func (p *Parser) OutOfMemory() (line string, ok bool) {
	return excerpt(p.noMemory), len(p.noMemory) > 0 && p.count-p.noMemoryAt <= memoryLines
}
