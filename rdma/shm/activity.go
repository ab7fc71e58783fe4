package shm

import "github.com/farmsql/farmsql/rdma"

// An active word says whether a worker is in an operation, and in which:
//
//	| described: 1 bit | hash of the key: 15 | target machine: 16 | count: 32 |
//
// The count is of beginnings and ends, and odd in an operation; the rest is 0 outside
// of one. One that is not described, a program before this one's, may be on anything.
const (
	describedBit  = 1 << 63
	activeKeyAt   = 48
	activeMachine = 32
)

// activity is the active word of the operation that the count begins.
func activity(count uint32, to rdma.MachineID, k rdma.Key) uint64 {
	return describedBit | keyHash(k)<<activeKeyAt | uint64(to)<<activeMachine | uint64(count)
}

// keyHash has 15 bits. Operations on two keys with one hash wait for each other.
func keyHash(k rdma.Key) uint64 { return uint64(k) * 0x9e3779b97f4a7c15 >> 49 }

// onMachine accepts the operations that may be on a machine.
func onMachine(m rdma.MachineID) func(active uint64) bool {
	return func(active uint64) bool {
		return active&describedBit == 0 || rdma.MachineID(active>>activeMachine) == m
	}
}

// onMemory accepts the operations that may be on a registration.
func onMemory(m rdma.MachineID, k rdma.Key) func(active uint64) bool {
	onM, hash := onMachine(m), keyHash(k)
	return func(active uint64) bool {
		return onM(active) && (active&describedBit == 0 || active&^describedBit>>activeKeyAt == hash)
	}
}

// allOperations accepts any, and ofNobodyElse none: settle waits for its own
// machine's in any case.
func allOperations(uint64) bool { return true }
func ofNobodyElse(uint64) bool  { return false }
