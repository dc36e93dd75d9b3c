package output

import (
	"fmt"
	"testing"
	"time"
)

// Messages of real programs about missing memory, and lines that only speak of memory.
func TestParser_OutOfMemory(t *testing.T) {
	for line, want := range map[string]bool{
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total)":   true,
		"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1, 2)": true,
		"MemoryError": true,
		"2026-01-02 10:00:00.1 W tensorflow/core/framework: OP_REQUIRES failed: RESOURCE_EXHAUSTED: OOM when": true,
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate":    true,
		"Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space":                            true,
		"terminate called after throwing an instance of 'std::bad_alloc'":                                     true,
		"RuntimeError: [enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory: you tried": true,
		"OSError: [Errno 12] Cannot allocate memory":                                                          true,
		"Epoch 3/10 loss: 0.3 memory: 7312 MB":                                                                false,
		"max_memory_allocated 2.1 GB":                                                                         false,
		"Killed":                                                                                              false,
	} {
		p, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(0, 0)
		p.Write(1, []byte(line+"\nat train.py:3\n"), now)
		if got, ok := p.OutOfMemory(); ok != want || ok && got != line {
			t.Errorf("%q: got %q, %v, want %v", line, got, ok, want)
		}
		for i := range memoryLines {
			p.Write(1, fmt.Appendln(nil, "retried", i), now)
		}
		if got, ok := p.OutOfMemory(); ok {
			t.Errorf("%q: %q explains a failure after %d other lines", line, got, memoryLines)
		}
	}
}
