package rdma

import (
	"math/rand/v2"

	"github.com/farmsql/farmsql/rdma"
)

// An experiment varies one quantity, x, and measures each series for each value of x.
type experiment struct {
	name, title, x string
	series         []string
	xs             []int
	measure        func(b *bed, series string, x int) error
}

// experiments has all experiments, in the order of the tables.
var experiments = []experiment{
	{"size", "by size, one at a time", "bytes", []string{read, write, writeRing, send}, sizes, bySize},
	{"stream", "by size, 16 outstanding", "bytes", []string{read, write, writeRing}, sizes, bySizeMany},
	{"batch", "READs of 64 bytes, by operations for each doorbell, 64 outstanding", "batch", []string{read, write}, []int{1, 2, 4, 8, 16, 32, 64}, byBatch},
	{"signalled", "WRITEs of 64 bytes in batches of 16, one completion wanted of", "operations", []string{write}, []int{1, 4, 16, 64}, bySignals},
	{"outstanding", "64 bytes, by outstanding operations, each flushed by itself", "outstanding", []string{read, write}, []int{1, 2, 4, 8, 16, 32, 64}, byOutstanding},
	{"queues", "READs of 64 bytes, 16 outstanding at each queue", "queues", []string{read}, []int{1, 2, 4, 8}, byQueues},
	{"memory", "random READs of 64 bytes in batches of 16, by the memory they touch (NSDI'14, Figure 4)", "MiB", []string{read}, []int{1, 4, 16, 64, 256}, byMemory},
	{"connections", "READs of 64 bytes in batches of 16, each to the next of so many machines (NSDI'14, Figure 5)", "machines", []string{read}, []int{1, 2, 4, 8, 16}, byConnections},
	{"messages", "a message and its reply beside a READ, one at a time (NSDI'14, Figures 2 and 3)", "bytes", []string{message, read}, []int{16, 64, 256, 1024}, byMessages},
	{"sequencer", "numbers of a counter, by callers that ask together (Design Guidelines, section 4.2): one message for all, or a READ each, 64 outstanding",
		"callers", []string{message, fetch}, []int{1, 8, 64, 1024}, bySequencer},
}

// The kinds of operations, as names of series.
const (
	read      = "READ"
	write     = "WRITE"
	writeRing = "WRITE with immediate"
	send      = "SEND"
	message   = "message and reply"
	fetch     = "READ of 8 bytes"
)

// sizes includes 128, the last size that travels inside its request, and 136, the first
// that does not.
var sizes = []int{8, 64, 128, 136, 512, 4096, 16384, 65536}

// batchMax is the largest number of operations per doorbell.
const batchMax = 64

// largest is the size of a machine's memory, unless an experiment needs more.
const largest = 1 << 20

// post returns a function that posts a read, a write or a writeRing, with this number of bytes, to
// machine 1.
func post(kind string, bytes int) func(q rdma.Queue, i, tag uint64) (bool, error) {
	b := make([]byte, bytes)
	switch kind {
	case read:
		return func(q rdma.Queue, _, tag uint64) (bool, error) { return q.Read(1, key, 0, b, tag) }
	case write:
		return func(q rdma.Queue, _, tag uint64) (bool, error) { return q.Write(1, key, 0, b, tag) }
	}
	return func(q rdma.Queue, _, tag uint64) (bool, error) { return q.WriteRing(1, key, 0, b, tag) }
}

func bySize(b *bed, series string, bytes int) error {
	if series == send {
		return b.datagrams(bytes)
	}
	return b.two(load{post: post(series, bytes), batch: 1, outstanding: 1, wanted: 1})
}

func bySizeMany(b *bed, series string, bytes int) error {
	return b.two(load{post: post(series, bytes), batch: 1, outstanding: 16, wanted: 1})
}

func byBatch(b *bed, series string, batch int) error {
	return b.two(load{post: post(series, rdma.LineBytes), batch: batch, outstanding: 64, wanted: 1})
}

func bySignals(b *bed, series string, wanted int) error {
	return b.two(load{post: post(series, rdma.LineBytes), batch: 16, outstanding: 64, wanted: uint64(wanted)})
}

func byOutstanding(b *bed, series string, outstanding int) error {
	return b.two(load{post: post(series, rdma.LineBytes), batch: 1, outstanding: outstanding, wanted: 1})
}

func byQueues(b *bed, series string, queues int) error {
	return b.load(2, queues, largest, func() load {
		return load{post: post(series, rdma.LineBytes), batch: 1, outstanding: 16, wanted: 1}
	})
}

func byMemory(b *bed, _ string, mib int) error {
	lines := (uint64(mib) << 20) / rdma.LineBytes
	return b.load(2, 1, int64(mib)<<20, func() load {
		random, dst := rand.New(rand.NewPCG(1, 2)), make([]byte, rdma.LineBytes)
		return load{batch: 16, outstanding: 16, wanted: 1, post: func(q rdma.Queue, _, tag uint64) (bool, error) {
			return q.Read(1, key, random.Uint64N(lines)*rdma.LineBytes, dst, tag)
		}}
	})
}

func byConnections(b *bed, _ string, machines int) error {
	return b.load(1+machines, 1, largest, func() load {
		dst := make([]byte, rdma.LineBytes)
		return load{batch: 16, outstanding: 16, wanted: 1, post: func(q rdma.Queue, i, tag uint64) (bool, error) {
			return q.Read(rdma.MachineID(1+i%uint64(machines)), key, 0, dst, tag)
		}}
	})
}

func byMessages(b *bed, series string, bytes int) error {
	if series == message {
		return b.messages(bytes)
	}
	return bySize(b, series, bytes)
}

func bySequencer(b *bed, series string, callers int) error {
	if series == message {
		return b.numbers(callers, new(sequencer).serve)
	}
	return b.two(load{post: post(read, 8), batch: min(callers, batchMax), outstanding: batchMax, wanted: 1})
}
