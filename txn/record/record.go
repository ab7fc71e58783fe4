// Package record defines the contents of a transaction log, and does not act on them: records and
// their encoding (record.go), annexes, which hold the writes of a record that does not fit the log
// (annex.go), identifiers of transactions (id.go), and the ledger, which still lists the truncated
// transactions when their records are gone (ledger.go). A log's memory is
//
//	| ring of records (package ring) ...                  | ledger, one page |
//
// Package txn writes and reads logs; package recovery gets their contents from txn. Nothing here is
// safe for concurrent use except a ledger: it has one writer, and others can read its words at any
// moment.
//
// Decoders trust no input, since it may come from another machine, or from memory after a crash. For
// input that makes no sense they return ErrBad.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Kind is the type of a log record (SOSP'15, table 1).
type Kind uint8

const (
	Lock Kind = iota + 1
	CommitBackup
	CommitPrimary
	Abort
	Truncate
	// Notes, which a machine writes to its own log while transactions recover (table 2; see
	// package evidence). They may carry identifiers of other coordinators' transactions.
	Replicate
	CommitRecovery
	AbortRecovery
	Kinds
)

var kindNames = [Kinds]string{"", "LOCK", "COMMIT-BACKUP", "COMMIT-PRIMARY", "ABORT", "TRUNCATE",
	"REPLICATE-TX-STATE", "COMMIT-RECOVERY", "ABORT-RECOVERY"}

// IsNote reports whether the record is a note in its machine's own log.
func (k Kind) IsNote() bool { return k >= Replicate }

func (k Kind) String() string {
	if k == 0 || k >= Kinds {
		return fmt.Sprintf("record kind %d", uint8(k))
	}
	return kindNames[k]
}

// An Op is a transaction's operation on one object.
type Op uint8

const (
	// OpUpdate replaces the payload.
	OpUpdate Op = iota
	// OpAlloc makes a free slot an object.
	OpAlloc
	// OpFree makes an object a free slot, of the next incarnation.
	OpFree
	writeOps
)

// A Write is the part of a LOCK or COMMIT-BACKUP record about one object: the version at which the
// transaction locks the object, and the object's new state, one version later.
type Write struct {
	Ptr     region.Ptr
	Version region.Version
	Op      Op
	Payload []byte // Ptr.Capacity() bytes; nil for OpFree
}

// After returns the object's state after the commit of the write.
func (w *Write) After() (v region.Version, allocated bool, incarnation uint64) {
	v, allocated, incarnation = w.Version+1, true, w.Ptr.Incarnation()
	if w.Op == OpFree {
		allocated, incarnation = false, incarnation+1
	}
	return v, allocated, incarnation
}

// A Record is a decoded log record. Writes' payloads and the other slices alias
// the bytes that it was decoded from.
type Record struct {
	Kind Kind
	ID   ID
	// All transactions of the coordinating worker below LowBound are truncated; Truncated names
	// those at or above it. In a note about a recovering transaction, LowBound is the region and the
	// Seen of the note instead (package evidence), and Truncated the configuration whose recovery
	// made the note.
	LowBound  uint64
	Truncated []uint64
	// Regions lists all regions that the transaction writes to.
	Regions []region.ID
	Writes  []Write
	// Annex says where the writes are if they are not in the record.
	Annex Annex
}

// WhoAt is the offset in a record of its ID without the sequence; the upper half of that word is
// the configuration. No configuration is 0: a record with configuration 0 is void.
const (
	WhoAt    = 8
	VoidMask = 0xffffffff << 32
)

// IsVoid reports whether the record has no effect, because it came too late or made no sense.
func (r *Record) IsVoid() bool { return r.ID.Config == 0 }

// NotedIn returns the configuration for which a note was made. Notes of earlier program versions,
// and notes in memory of their own (park), do not record it.
func (r *Record) NotedIn() (c uint32, ok bool) {
	if !r.Kind.IsNote() || len(r.Truncated) == 0 {
		return 0, false
	}
	return uint32(r.Truncated[0]), true
}

var (
	// ErrBad means that bytes taken from a log are not a valid record.
	ErrBad = errors.New("txn: bad log record")
	// ErrFormat is the ErrBad for a record in the format of a newer program.
	ErrFormat = fmt.Errorf("%w: of a format that this program does not know", ErrBad)
)

// A record is, in little-endian 64-bit words:
//
//	| annexed 1, format 3, kind 4 | truncated 8 | regions 16 | writes 32 |
//	| config 32 | machine 16 | worker 16 |
//	| sequence |
//	| low bound |
//	| truncated sequence | ...
//	| region 32 | region 32 | ...                            (0 if odd)
//	| address | class and incarnation | op 4, version 60 | payload ... | ...
//
// The highest bit of the kind says that the writes are in an annex. Then the record has, in place
// of the writes, the following; its number of writes is the annex's:
//
//	| annex | bytes |
//
// The format describes the record from its second word on. 0 is the only format so far. Programs
// that are older than formats wrote 0, too, and reject any other format as an unknown kind. A
// further word in each record, for instance an epoch, would be a new format. A machine may write a
// format only once the instance speaks a protocol version that knows it (package
// internal/protocol), because machines other than the receiver read records, too. An annex has no
// format of its own: the format of the record that names it applies to its writes, too, so their
// encoding can change only together with the instance's version.
const (
	headerBytes      = 32
	writeHeaderBytes = region.PtrBytes + 8
	opShift          = 60

	AnnexedFlag Kind = 1 << 7
	kindBits         = 4
	kindMask    Kind = 1<<kindBits - 1
	// formatMax is the newest format that this program reads.
	formatMax = 0
	// AnnexedBytes is the size of the part of a record that names its annex.
	AnnexedBytes = 16
)

// TruncatedMax bounds how many truncations are piggybacked on one record. Further truncations wait
// for the next record, or until the low bound has passed them.
const TruncatedMax = 64

var (
	_ = [1]struct{}{}[writeOps>>(64-opShift)] // an op fits beside a version
	_ = [1]struct{}{}[TruncatedMax>>8]        // the count of truncations fits its 8 bits
	_ = [1]struct{}{}[Kinds>>kindBits]        // no kind has a bit of the format, or the flag
)

func roundUp8(n int) int { return (n + 7) &^ 7 }

// WriteBytes is the encoded size of a write.
func WriteBytes(w *Write) int { return writeHeaderBytes + roundUp8(len(w.Payload)) }

// HeaderBytes is the encoded size of a record without its writes.
func HeaderBytes(truncated, regions int) int {
	return headerBytes + 8*truncated + roundUp8(4*regions)
}

// AppendHeader encodes the part of a record that comes before its writes. k may have AnnexedFlag.
func AppendHeader(b []byte, k Kind, id ID, low uint64, truncated []uint64, regions []region.ID, writes int) []byte {
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

// Bytes is the encoded size of a record that holds its writes itself, not in an annex.
func Bytes(r *Record) int {
	n := HeaderBytes(len(r.Truncated), len(r.Regions))
	for i := range r.Writes {
		n += WriteBytes(&r.Writes[i])
	}
	return n
}

// AppendWrite encodes a write after b.
func AppendWrite(b []byte, w *Write) []byte {
	b = w.Ptr.Append(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(w.Op)<<opShift|uint64(w.Version))
	b = append(b, w.Payload...)
	for pad := roundUp8(len(w.Payload)) - len(w.Payload); pad > 0; pad-- {
		b = append(b, 0)
	}
	return b
}

// Append encodes r after b.
func Append(b []byte, r *Record) []byte {
	if !r.Annex.IsNone() {
		b = AppendHeader(b, r.Kind|AnnexedFlag, r.ID, r.LowBound, r.Truncated, r.Regions, int(r.Annex.Writes))
		return r.Annex.Append(b)
	}
	b = AppendHeader(b, r.Kind, r.ID, r.LowBound, r.Truncated, r.Regions, len(r.Writes))
	for i := range r.Writes {
		b = AppendWrite(b, &r.Writes[i])
	}
	return b
}

// A Decoder decodes a record word by word, or encoded writes one by one.
type Decoder struct {
	b   []byte
	ok  bool
	err error // what is wrong with the input, if known
}

// NewDecoder returns a decoder of b. The results of its methods alias b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b, ok: true} }

// Len returns how many bytes are left.
func (d *Decoder) Len() int { return len(d.b) }

func (d *Decoder) take(n int) []byte {
	if n > len(d.b) {
		d.ok, d.b = false, nil
		return nil
	}
	head := d.b[:n:n]
	d.b = d.b[n:]
	return head
}

func (d *Decoder) word() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Decode decodes b into r, reusing r's slices. Anything that is not a
// whole, well-formed record is ErrBad.
func Decode(b []byte, r *Record) error {
	d := NewDecoder(b)
	head, who := d.word(), d.word()
	truncated, regions, writes := int(uint8(head>>48)), int(uint16(head>>32)), int(uint32(head)) // the numbers of items that follow
	r.Kind = Kind(head>>56) & kindMask
	if format := (Kind(head>>56) &^ AnnexedFlag) >> kindBits; format > formatMax {
		return fmt.Errorf("%w: format %d, it reads formats up to %d: start this machine with a newer farmsql", ErrFormat, format, formatMax)
	}
	isAnnexed := Kind(head>>56)&AnnexedFlag != 0
	r.ID = ID{Config: uint32(who >> 32), Machine: rdma.MachineID(who >> 16), Worker: uint16(who), Seq: d.word()}
	r.LowBound = d.word()
	r.Truncated, r.Regions, r.Writes, r.Annex = r.Truncated[:0], r.Regions[:0], r.Writes[:0], Annex{}
	if !d.ok || r.Kind == 0 || r.Kind >= Kinds {
		return fmt.Errorf("%w: header %#x, %d bytes", ErrBad, head, len(b))
	}
	mustHaveWrites := r.Kind == Lock || r.Kind == CommitBackup
	if r.Kind == Replicate { // this kind of record may have no writes
		if regions == 0 {
			return fmt.Errorf("%w: %v of %v without regions", ErrBad, r.Kind, r.ID)
		}
	} else if mustHaveWrites != (writes > 0) || mustHaveWrites != (regions > 0) {
		return fmt.Errorf("%w: %v of %v with %d writes to %d regions", ErrBad, r.Kind, r.ID, writes, regions)
	}
	for range truncated {
		r.Truncated = append(r.Truncated, d.word())
	}
	d.regions(r, regions)
	if isAnnexed {
		r.Annex = Annex{Number: d.word(), Bytes: d.word(), Writes: uint32(writes)}
		d.ok = d.ok && r.Annex.isPossible() && mustHaveWrites
	} else {
		d.writes(r, writes)
	}
	if d.err != nil {
		return fmt.Errorf("%w: %v of %v: %w", ErrBad, r.Kind, r.ID, d.err)
	}
	if !d.ok || len(d.b) != 0 {
		return fmt.Errorf("%w: %v of %v cannot have these %d bytes", ErrBad, r.Kind, r.ID, len(b))
	}
	return nil
}

// regions decodes n regions, two in a word; an odd one is followed by zeros.
func (d *Decoder) regions(r *Record, n int) {
	for i := 0; i < n; i += 2 {
		w := d.word()
		r.Regions = append(r.Regions, region.ID(uint32(w)))
		if i+1 < n {
			r.Regions = append(r.Regions, region.ID(uint32(w>>32)))
		} else if w>>32 != 0 {
			d.ok = false
		}
	}
}

// writes decodes n writes, or fewer if the record ends before.
func (d *Decoder) writes(r *Record, n int) {
	for range n {
		w, ok := d.Next()
		if !ok {
			break
		}
		r.Writes = append(r.Writes, w)
	}
}

// Next decodes one write. ok is false if no write is left, or if the next write is invalid.
func (d *Decoder) Next() (w Write, ok bool) {
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
	w = Write{Ptr: p, Op: Op(v >> opShift), Version: region.Version(v & (1<<opShift - 1))}
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

// SeqOf returns the sequence number in an encoded record.
func SeqOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b[16:]) }

// KindOf returns the kind of an encoded record.
func KindOf(b []byte) Kind { return Kind(b[7]) & kindMask }
