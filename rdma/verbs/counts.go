package verbs

import "github.com/farmsql/farmsql/rdma"

var _ rdma.Counter = (*NIC)(nil)

// Counts implements rdma.Counter. The calls that agree on queue pairs and register memory, and datagrams, are not counted: a
// commit has none.
func (nic *NIC) Counts() rdma.Counts { return nic.counts.Sum() }

// countLocked counts a call of exchange with what is in q.mu.requests. A nudge is part of no operation: it is not counted.
func (q *Queue) countLocked(doorbells int) {
	n := q.counts
	var requests, bytes, signals, inlines, fences uint64
	for i := range q.mu.requests {
		r := &q.mu.requests[i]
		if r.flags&nudging != 0 {
			doorbells--
			continue
		}
		requests++
		bytes += uint64(r.bytes)
		signals += uint64((r.flags & signalled) / signalled) // 1 if the flag is set
		inlines += uint64((r.flags & inlined) / inlined)
		fences += uint64((r.flags & fenced) / fenced)
	}
	if requests == 0 {
		n.Polls.Add(1)
		return
	}
	n.Calls.Add(1)
	n.Doorbells.Add(uint64(doorbells))
	n.Requests.Add(requests)
	n.Bytes.Add(bytes)
	n.Signalled.Add(signals)
	n.Inlined.Add(inlines)
	n.Fenced.Add(fences)
}
