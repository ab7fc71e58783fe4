package shm

import "github.com/farmsql/farmsql/rdma"

// An active word says whether a worker is in an operation, and in which:
//
//	| described: 1 bit | hash of the key: 15 | target machine: 16 | count: 32 |
//
// The count rises at the beginning and at the end of each operation, so it is odd during one.
// Outside of operations the other fields are 0. An older program does not set the described bit: its
// operation may be on any machine and key.
const (
	describedBit    = 1 << 63
	activeKeyAt     = 48
	activeMachineAt = 32
)

// activity returns the active word of the operation that begins with this count.
func activity(count uint32, to rdma.MachineID, k rdma.Key) uint64 {
	return describedBit | keyHash(k)<<activeKeyAt | uint64(to)<<activeMachineAt | uint64(count)
}

// keyHash returns 15 bits of a key's hash. A wait for operations on one key therefore also waits for
// operations on keys with the same hash.
func keyHash(k rdma.Key) uint64 { return (uint64(k) * 0x9e3779b97f4a7c15) >> 49 }

// onMachine returns a predicate that accepts operations that may be on machine m. An active word that
// does not describe its operation may be of any.
func onMachine(m rdma.MachineID) func(active uint64) bool {
	return func(active uint64) bool {
		return active&describedBit == 0 || rdma.MachineID(active>>activeMachineAt) == m
	}
}

// onMemory returns a predicate that accepts operations that may be on registration k of machine m.
func onMemory(m rdma.MachineID, k rdma.Key) func(active uint64) bool {
	onM, hash := onMachine(m), keyHash(k)
	return func(active uint64) bool {
		isDescribed := active&describedBit != 0
		return onM(active) && (!isDescribed || (active&^describedBit)>>activeKeyAt == hash)
	}
}

// allOperations accepts every operation. ofNobodyElse accepts none: then settle waits only for this
// machine's own operations, for which it waits in any case.
func allOperations(uint64) bool { return true }
func ofNobodyElse(uint64) bool  { return false }
