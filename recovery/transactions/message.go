package transactions

import (
	"encoding/binary"
	"errors"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

// Kinds of calls between members (SOSP'15 table 2). FETCH-TX-STATE and
// SEND-TX-STATE are a READ.
const (
	kindNeedRecovery = 64 + iota
	kindRegionActive
	kindReplicate
	kindVote
	kindRequestVote
	kindOutcome // COMMIT-RECOVERY and ABORT-RECOVERY
	kindTruncateRecovery
	kindDecided
	kindPark
	kindBlocks
	kindConnect
)

// batchBytesMax bounds the arguments of a call.
const batchBytesMax = 24 << 10

var errBadCall = errors.New("transactions: a call that makes no sense")

// An argument is
//
//	| configuration 32 | last 8, zero 24 | entry ...
//
// and an entry of evidence
//
//	| config 32 | machine 16 | worker 16 | sequence 64 |
//	| region 32 | seen 8, flag 8, regions 16 | region 32 ... | key, off, n, rest, more 64 |
//
// in little-endian order. last is set in the last call of a list. The fields from key to more are
// the record's place in a log. Messages that need neither regions nor place leave the regions out and
// the place zero.
const argumentHeaderBytes = 8

// An entry is one line of a list. The meaning of flag depends on the kind of call.
type entry struct {
	evidence.Evidence
	flag uint8
}

const (
	entryHeadBytes = 24 // an entry up to its list of regions
	extentBytes    = 40 // the record's place, after the list
)

func (e *entry) bytes() int { return entryHeadBytes + 4*len(e.Regions) + extentBytes }

func appendEntry(b []byte, e *entry) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, e.ID.Config)
	b = le.AppendUint16(b, uint16(e.ID.Machine))
	b = le.AppendUint16(b, e.ID.Worker)
	b = le.AppendUint64(b, e.ID.Seq)
	b = le.AppendUint32(b, uint32(e.Region))
	b = append(b, byte(e.Seen), e.flag)
	b = le.AppendUint16(b, uint16(len(e.Regions)))
	for _, id := range e.Regions { // any order
		b = le.AppendUint32(b, uint32(id))
	}
	for _, v := range []uint64{uint64(e.At.Key), e.At.Off, e.At.N, e.At.Rest, e.At.More} {
		b = le.AppendUint64(b, v)
	}
	return b
}

// takeEntry decodes the first entry of b, and returns the rest of b.
func takeEntry(b []byte) (e entry, rest []byte, err error) {
	le := binary.LittleEndian
	if len(b) < entryHeadBytes {
		return e, nil, errBadCall
	}
	e.ID = record.ID{Config: le.Uint32(b), Machine: rdma.MachineID(le.Uint16(b[4:])), Worker: le.Uint16(b[6:]), Seq: le.Uint64(b[8:])}
	e.Region, e.Seen, e.flag = region.ID(le.Uint32(b[16:])), evidence.Seen(b[20]), b[21]
	n := int(le.Uint16(b[22:]))
	b = b[entryHeadBytes:]
	if len(b) < 4*n+extentBytes {
		return e, nil, errBadCall
	}
	for range n {
		e.Regions = append(e.Regions, region.ID(le.Uint32(b)))
		b = b[4:]
	}
	e.At = evidence.Extent{Key: rdma.Key(le.Uint64(b)), Off: le.Uint64(b[8:]), N: le.Uint64(b[16:]), Rest: le.Uint64(b[24:]), More: le.Uint64(b[32:])}
	if e.At.N > uint64(ringBytesMax) || e.At.More > uint64(ringBytesMax) {
		return e, nil, errBadCall
	}
	return e, b[extentBytes:], nil
}

// ringBytesMax bounds the lengths of a record and of its annex that an entry may claim.
const ringBytesMax = 1 << 31

func configurationOf(b []byte) cluster.ID { return cluster.ID(binary.LittleEndian.Uint32(b)) }

// header returns the beginning of an argument: the configuration, and whether this is the last part
// of a list.
func header(id cluster.ID, last bool) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 1<<10), uint32(id))
	if last {
		return append(b, 1, 0, 0, 0)
	}
	return append(b, 0, 0, 0, 0)
}

// batches encodes a list as the arguments of one or more calls, each of at most batchBytesMax unless
// a single entry is longer. An empty list needs a call, too: its last flag tells that the list ends.
func batches(id cluster.ID, list []entry) [][]byte {
	var all [][]byte
	for {
		n, size := 0, argumentHeaderBytes
		for n < len(list) && (n == 0 || size+list[n].bytes() <= batchBytesMax) {
			size += list[n].bytes()
			n++
		}
		b := header(id, n == len(list))
		for i := range n {
			b = appendEntry(b, &list[i])
		}
		all = append(all, b)
		list = list[n:]
		if len(list) == 0 {
			return all
		}
	}
}

// decodeBatch decodes the argument of one call.
func decodeBatch(b []byte) (id cluster.ID, list []entry, last bool, err error) {
	if len(b) < argumentHeaderBytes {
		return 0, nil, false, errBadCall
	}
	id, last = cluster.ID(binary.LittleEndian.Uint32(b)), b[4] != 0
	for b = b[argumentHeaderBytes:]; len(b) > 0; {
		var e entry
		if e, b, err = takeEntry(b); err != nil {
			return 0, nil, false, err
		}
		list = append(list, e)
	}
	return id, list, last, nil
}

// flagNamed marks an entry of DECIDED that names one truncated transaction at or above the low bound
// of its worker. An entry without the flag is such a low bound.
const flagNamed = 1

// boundEntries encodes bounds as entries. Each entry can be understood without the others, so that
// batches may split the list anywhere.
func boundEntries(bounds []evidence.Bound) (list []entry) {
	for _, b := range bounds {
		id := record.ID{Machine: b.Machine, Worker: b.Worker, Seq: b.Low}
		list = append(list, entry{Evidence: evidence.Evidence{ID: id}})
		for _, seq := range b.Named {
			id.Seq = seq
			list = append(list, entry{Evidence: evidence.Evidence{ID: id}, flag: flagNamed})
		}
	}
	return list
}

// boundsOf decodes what boundEntries has encoded.
func boundsOf(list []entry) (bounds []evidence.Bound) {
	for i := range list {
		id := list[i].ID
		b := evidence.Bound{Machine: id.Machine, Worker: id.Worker, Low: id.Seq}
		if list[i].flag == flagNamed {
			b = evidence.NamedBound(id.Machine, id.Worker, id.Seq)
		}
		bounds = append(bounds, b)
	}
	return bounds
}
