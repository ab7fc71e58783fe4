package farmsql

import "testing"

func TestComputerMemory(t *testing.T) {
	if n := ComputerMemory(); n < 64*MiB || n > 1<<50 {
		t.Errorf("the computer has %d bytes", n)
	}
	if n := MappedMemory(); n <= 0 || n > ComputerMemory() {
		t.Errorf("%d bytes are mapped", n)
	}
}
