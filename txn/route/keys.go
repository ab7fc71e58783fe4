package route

import (
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A KeyKind is the kind of memory that a key names. Machines register their memory with the NIC
// under keys; the kind is a key's first byte.
type KeyKind uint8

const (
	KeyRegion KeyKind = iota + 1
	KeyLog
	KeyMessages
	KeyCredit
	keyRecalled
	KeyBlocks
	keyParked
	keyNotes
	KeyAnnex
)

func makeKey(kind KeyKind, rest uint64) rdma.Key { return rdma.Key(uint64(kind)<<56 | rest) }

// KindOf returns the kind of memory that k names.
func KindOf(k rdma.Key) KeyKind { return KeyKind(k >> 56) }

// RegionKey names a region's replica at any machine that has one.
func RegionKey(id region.ID) rdma.Key { return makeKey(KeyRegion, uint64(id)) }

// BlocksKey names a backup of p's region as the target of block headers, which the primary WRITEs.
// The key changes with the primary: a late WRITE by an earlier primary finds no memory under its old
// key.
func BlocksKey(p cluster.Placement) rdma.Key {
	return makeKey(KeyBlocks, uint64(p.LastPrimaryChange&lifeMask)<<32|uint64(p.Region))
}

// ReceiveBlocks registers this machine's replica of a region for block headers from the primary in
// placement p, and from no earlier primary. old is the key that the previous call for the replica
// returned, or 0 in the first call; ReceiveBlocks returns the new key. The call must come before
// NEW-CONFIG is acknowledged.
func ReceiveBlocks(nic rdma.NIC, p cluster.Placement, r *region.Region, old rdma.Key) (rdma.Key, error) {
	key := BlocksKey(p)
	if key == old {
		return old, nil
	}
	if old != 0 {
		nic.Deregister(old)
	}
	return key, nic.Register(key, r.Memory())
}

// LogKey names the log that a sender's worker writes to.
//
// life distinguishes logs that replace each other, for another life of the sender or after its
// connection broke: a delayed WRITE to the old log finds no memory under its key.
func LogKey(sender rdma.MachineID, worker uint16, life uint32) rdma.Key {
	return makeKey(KeyLog, uint64(life&lifeMask)<<32|uint64(sender)<<16|uint64(worker))
}

// MessagesKey names the message queue that a sender's worker writes to, in the same way as LogKey.
func MessagesKey(sender rdma.MachineID, worker uint16, life uint32) rdma.Key {
	return makeKey(KeyMessages, uint64(life&lifeMask)<<32|uint64(sender)<<16|uint64(worker))
}

// RecalledKey names the i'th log of an earlier life.
func RecalledKey(i int) rdma.Key { return makeKey(keyRecalled, uint64(i)) }

// ParkedKey names the n'th memory of the transactions that the given configuration has parked.
func ParkedKey(in cluster.ID, n int) rdma.Key {
	return makeKey(keyParked, uint64(in&lifeMask)<<32|uint64(n))
}

// NotesKey names the n'th memory with notes of a configuration's recovery.
func NotesKey(in cluster.ID, n int) rdma.Key {
	return makeKey(keyNotes, uint64(in&lifeMask)<<32|uint64(n))
}

const lifeMask = 1<<24 - 1

// A worker's credit memory has two words for each peer, by which the peer tells the worker how far it
// has freed the log and the message queue that the worker writes to.
const (
	CreditLog = iota
	CreditMessages
	creditWords
)

// machinesMax bounds the identifiers of machines.
const machinesMax = 1024

// CreditBytes is the size of a worker's credit memory.
const CreditBytes = machinesMax * creditWords * 8

// AnnexKey names an annex.
func AnnexKey(number uint64) rdma.Key { return makeKey(KeyAnnex, number) }

// CreditKey names the credit memory of a worker.
func CreditKey(worker uint16) rdma.Key { return makeKey(KeyCredit, uint64(worker)) }

// CreditOffset is the offset of a peer's word in credit memory.
func CreditOffset(peer rdma.MachineID, word int) uint64 {
	return (uint64(peer)*creditWords + uint64(word)) * 8
}
