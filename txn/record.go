package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A RecordKind is the type of a log record (SOSP'15, table 1).
type RecordKind uint8

const (
	RecordLock RecordKind = iota + 1
	RecordCommitBackup
	RecordCommitPrimary
	RecordAbort
	RecordTruncate
	// What a machine notes in its own log while transactions recover (table 2;
	// see evidence.go), with the identifiers of other coordinators' too.
	RecordReplicate
	RecordCommitRecovery
	RecordAbortRecovery
	recordKinds
)

var recordKindNames = [recordKinds]string{"", "LOCK", "COMMIT-BACKUP", "COMMIT-PRIMARY", "ABORT", "TRUNCATE",
	"REPLICATE-TX-STATE", "COMMIT-RECOVERY", "ABORT-RECOVERY"}

// isNote says whether the record is a note in its machine's own log.
func (k RecordKind) isNote() bool { return k >= RecordReplicate }

func (k RecordKind) String() string {
	if k == 0 || k >= recordKinds {
		return fmt.Sprintf("record kind %d", uint8(k))
	}
	return recordKindNames[k]
}

// A WriteOp says what a transaction does to one object.
type WriteOp uint8

const (
	// OpUpdate replaces the payload.
	OpUpdate WriteOp = iota
	// OpAlloc makes a free slot an object.
	OpAlloc
	// OpFree makes an object a free slot, of the next incarnation.
	OpFree
	writeOps
)

// A Write is one object's part of a LOCK or COMMIT-BACKUP record: the version
// that the object must have, and what it becomes, one version later.
type Write struct {
	Ptr     region.Ptr
	Version region.Version
	Op      WriteOp
	Payload []byte // Ptr.Capacity() bytes; nil for OpFree
}

// after returns the state that committing the write gives the object.
func (w *Write) after() (v region.Version, allocated bool, incarnation uint64) {
	v, allocated, incarnation = w.Version+1, true, w.Ptr.Incarnation()
	if w.Op == OpFree {
		allocated, incarnation = false, incarnation+1
	}
	return v, allocated, incarnation
}

// A Record is a decoded log record. Writes' payloads and the other slices alias
// the bytes that it was decoded from.
type Record struct {
	Kind RecordKind
	ID   ID
	// LowBound says that the coordinating worker's transactions below it are
	// truncated, Truncated which ones at or above it are too. In a note about a
	// recovering transaction LowBound holds what has been Seen of it instead, and
	// Truncated the configuration for which it recovers.
	LowBound  uint64
	Truncated []uint64
	// Regions lists all regions that the transaction writes to.
	Regions []region.ID
	Writes  []Write
	// Annex says where the writes are if they are not in the record.
	Annex Annex
}

// recordWhoAt is where a record has its ID but for the sequence, the upper half of which
// is the configuration. No configuration is 0: a record of it is void.
const (
	recordWhoAt = 8
	voidMask    = 0xffffffff << 32
)

// IsVoid says that a record counts for nothing, because it has come too late or made no sense.
func (r *Record) IsVoid() bool { return r.ID.Config == 0 }

// notedIn returns for which configuration a note was made. Those of earlier versions, and
// those in memory of their own (park), do not say so.
func (r *Record) notedIn() (c uint32, ok bool) {
	if !r.Kind.isNote() || len(r.Truncated) == 0 {
		return 0, false
	}
	return uint32(r.Truncated[0]), true
}

// ErrBadRecord means that bytes taken from a log are no record.
var ErrBadRecord = errors.New("txn: bad log record")

// A record is, in little-endian 64-bit words:
//
//	| kind 8 | truncated 8 | regions 16 | writes 32 |
//	| config 32 | machine 16 | worker 16 |
//	| sequence |
//	| low bound |
//	| truncated sequence | ...
//	| region 32 | region 32 | ...                            (0 if odd)
//	| address | class and incarnation | op 4, version 60 | payload ... | ...
//
// The highest bit of the kind says that the writes are in an annex. Then there is in their
// place, and the number of writes is that of the annex,
//
//	| annex | bytes |
const (
	recordHeaderBytes = 32
	writeHeaderBytes  = region.PtrBytes + 8
	opShift           = 60

	annexedFlag RecordKind = 1 << 7
	// annexedBytes is what a record says about its annex.
	annexedBytes = 16
)

// maxTruncatedPerRecord bounds what one record piggybacks; the rest waits for
// the next record or for the low bound to pass it.
const maxTruncatedPerRecord = 64

var (
	_ = [1]struct{}{}[writeOps>>(64-opShift)]   // an op fits beside a version
	_ = [1]struct{}{}[maxTruncatedPerRecord>>8] // and the count in its 8 bits
	_ = [1]struct{}{}[recordKinds/annexedFlag]  // no kind has the flag
)

func roundUp8(n int) int { return (n + 7) &^ 7 }

// writeBytes is the encoded size of a write.
func writeBytes(w *Write) int { return writeHeaderBytes + roundUp8(len(w.Payload)) }

func recordBytes(truncated, regions int) int {
	return recordHeaderBytes + 8*truncated + roundUp8(4*regions)
}

func appendRecordHeader(b []byte, k RecordKind, id ID, low uint64, truncated []uint64, regions []region.ID, writes int) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(k)<<56|uint64(len(truncated))<<48|uint64(len(regions))<<32|uint64(writes))
	b = le.AppendUint64(b, uint64(id.Config)<<32|uint64(id.Machine)<<16|uint64(id.Worker))
	b = le.AppendUint64(b, id.Seq)
	b = le.AppendUint64(b, low)
	for _, s := range truncated {
		b = le.AppendUint64(b, s)
	}
	for _, r := range regions {
		b = le.AppendUint32(b, uint32(r))
	}
	if len(regions)%2 == 1 {
		b = le.AppendUint32(b, 0)
	}
	return b
}

// encodedBytes is the encoded size of a record whose writes are in it.
func encodedBytes(r *Record) int {
	n := recordBytes(len(r.Truncated), len(r.Regions))
	for i := range r.Writes {
		n += writeBytes(&r.Writes[i])
	}
	return n
}

func appendWrite(b []byte, w *Write) []byte {
	b = w.Ptr.Append(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(w.Op)<<opShift|uint64(w.Version))
	b = append(b, w.Payload...)
	for pad := roundUp8(len(w.Payload)) - len(w.Payload); pad > 0; pad-- {
		b = append(b, 0)
	}
	return b
}

// AppendRecord encodes r after b.
func AppendRecord(b []byte, r *Record) []byte {
	if !r.Annex.IsNone() {
		b = appendRecordHeader(b, r.Kind|annexedFlag, r.ID, r.LowBound, r.Truncated, r.Regions, int(r.Annex.Writes))
		return r.Annex.append(b)
	}
	b = appendRecordHeader(b, r.Kind, r.ID, r.LowBound, r.Truncated, r.Regions, len(r.Writes))
	for i := range r.Writes {
		b = appendWrite(b, &r.Writes[i])
	}
	return b
}

// A decoder takes words off the front of a record.
type decoder struct {
	b   []byte
	ok  bool
	err error // what is wrong, if that can be said
}

func newDecoder(b []byte) decoder { return decoder{b: b, ok: true} }

// len returns how many bytes are left.
func (d *decoder) len() int { return len(d.b) }

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.ok, d.b = false, nil
		return nil
	}
	head := d.b[:n:n]
	d.b = d.b[n:]
	return head
}

func (d *decoder) word() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// DecodeRecord decodes b into r, reusing r's slices. Anything that is not a
// whole, well-formed record is ErrBadRecord.
func DecodeRecord(b []byte, r *Record) error {
	d := newDecoder(b)
	head, who := d.word(), d.word()
	r.Kind = RecordKind(head>>56) &^ annexedFlag
	isAnnexed := RecordKind(head>>56)&annexedFlag != 0
	r.ID = ID{Config: uint32(who >> 32), Machine: rdma.MachineID(who >> 16), Worker: uint16(who), Seq: d.word()}
	r.LowBound = d.word()
	r.Truncated, r.Regions, r.Writes, r.Annex = r.Truncated[:0], r.Regions[:0], r.Writes[:0], Annex{}
	if !d.ok || r.Kind == 0 || r.Kind >= recordKinds {
		return fmt.Errorf("%w: header %#x, %d bytes", ErrBadRecord, head, len(b))
	}
	if r.Kind == RecordReplicate { // may say nothing new about the writes
		if uint16(head>>32) == 0 {
			return fmt.Errorf("%w: %v of %v without regions", ErrBadRecord, r.Kind, r.ID)
		}
	} else if carries := r.Kind == RecordLock || r.Kind == RecordCommitBackup; carries != (uint32(head) > 0) || carries != (uint16(head>>32) > 0) {
		return fmt.Errorf("%w: %v of %v with %d writes to %d regions", ErrBadRecord, r.Kind, r.ID, uint32(head), uint16(head>>32))
	}
	for range uint8(head >> 48) {
		r.Truncated = append(r.Truncated, d.word())
	}
	nRegions := int(uint16(head >> 32))
	for i := 0; i < nRegions; i += 2 {
		w := d.word()
		r.Regions = append(r.Regions, region.ID(uint32(w)))
		if i+1 < nRegions {
			r.Regions = append(r.Regions, region.ID(uint32(w>>32)))
		} else if w>>32 != 0 {
			d.ok = false
		}
	}
	if isAnnexed {
		r.Annex = Annex{Number: d.word(), Bytes: d.word(), Writes: uint32(head)}
		d.ok = d.ok && r.Annex.isPossible() && (r.Kind == RecordLock || r.Kind == RecordCommitBackup)
	} else {
		d.writes(r, int(uint32(head)))
	}
	if d.err != nil {
		return fmt.Errorf("%w: %v of %v: %w", ErrBadRecord, r.Kind, r.ID, d.err)
	}
	if !d.ok || len(d.b) != 0 {
		return fmt.Errorf("%w: %v of %v cannot have these %d bytes", ErrBadRecord, r.Kind, r.ID, len(b))
	}
	return nil
}

// writes takes n writes, or fewer if they end before.
func (d *decoder) writes(r *Record, n int) {
	for range n {
		w, ok := d.write()
		if !ok {
			break
		}
		r.Writes = append(r.Writes, w)
	}
}

// write takes one write. It is not ok if there is none, or, with err, none that makes sense.
func (d *decoder) write() (w Write, ok bool) {
	raw := d.take(region.PtrBytes)
	if raw == nil {
		return w, false
	}
	p, err := region.DecodePtr(raw)
	if err != nil || p.IsNil() {
		d.ok, d.err = false, fmt.Errorf("a write to %v: %v", p, err)
		return w, false
	}
	v := d.word()
	w = Write{Ptr: p, Op: WriteOp(v >> opShift), Version: region.Version(v & (1<<opShift - 1))}
	if w.Op >= writeOps {
		d.ok, d.err = false, fmt.Errorf("op %d", w.Op)
		return w, false
	}
	if w.Op != OpFree {
		padded := d.take(roundUp8(p.Capacity()))
		if padded == nil {
			return w, false
		}
		for _, b := range padded[p.Capacity():] {
			d.ok = d.ok && b == 0
		}
		w.Payload = padded[:p.Capacity()]
	}
	return w, d.ok
}

// recordSeq returns the sequence number in an encoded record.
func recordSeq(b []byte) uint64 { return binary.LittleEndian.Uint64(b[16:]) }

// recordKindOf returns the kind of an encoded record.
func recordKindOf(b []byte) RecordKind { return RecordKind(b[7]) &^ annexedFlag }
