package main

import (
	"os"
	"testing"
)

// TestGuest runs in the virtual machine, where TestRun has it started.
func TestGuest(t *testing.T) {
	if os.Getenv("FARMSQL_IN_VM") == "" {
		t.Skip("runs in the virtual machine")
	}
	devices, err := os.ReadDir("/sys/class/infiniband")
	if err != nil || len(devices) != 2 {
		t.Errorf("devices are %v (%v), want 2", devices, err)
	}
	if b, err := os.ReadFile("testdata/hello"); err != nil || string(b) != "hello\n" {
		t.Errorf("testdata has %q (%v)", b, err)
	}
	if os.Getenv("FARMSQL_FAIL") != "" {
		t.Error("fails as told: it's so")
	}
}
