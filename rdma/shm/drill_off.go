//go:build !drills

package shm

// drill does nothing: see drill_on.go.
func (nic *NIC) drill() {}
