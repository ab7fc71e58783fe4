package test

import (
	"os"
	"runtime"
	"testing"
)

// TestSizeOfProgram: the linker drops the methods that nothing calls. It keeps all exported methods
// if the program can call reflect's Method, or MethodByName with a name that is not constant. Then
// the program has some 5 MB more than the 84.0 MB that it has. docs/internals/measurements.md explains how to
// find such a call.
func TestSizeOfProgram(t *testing.T) {
	const most = 86_000_000
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the size is known for linux/amd64 only")
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("farmsql has %d bytes, want at most %d", info.Size(), most)
	}
}
