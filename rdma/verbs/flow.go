package verbs

// signalEvery is how many requests may follow each other before one must have a completion;
// signalBytes is how many bytes they may have.
const (
	signalEvery = sendDepth / 8
	signalBytes = stagingBytes / 4
)

// A flow decides about the requests of one queue pair, in order: which have room, which must
// wait for READs before them, and which have a completion. The place of a request is its number
// among all requests that have been issued, from 1 on.
//
// A card has room for as many requests as its send queue has places. A request without a
// completion frees its place only with the completion of a later request. So each eighth of the
// queue has at least one completion, and no request is issued without room.
type flow struct {
	depth      uint64 // places of the send queue
	issued     uint64
	done       uint64 // all up to this place are done
	lastRead   uint64 // the last READ whose bytes are wanted
	lastFence  uint64 // READs up to this place are fenced off from all that has been issued since
	lastSignal uint64 // the last place with a completion
	unsaid     int    // bytes issued since lastSignal
}

// room returns how many requests can be issued, besides one that is kept for a completion.
func (f *flow) room() int { return int(f.depth - (f.issued - f.done) - 1) }

// next issues a request and returns its place, and whether it must wait until all READs before it are done.
//
// A card carries out requests of a queue pair in order, but may repeat a READ whose answer was
// lost. If later WRITEs have been carried out by then, the READ sees their bytes. So a WRITE or
// ring that follows a READ is fenced. A READ after a WRITE needs no fence.
func (f *flow) next(op wireOp, bytes int) (place uint64, fence bool) {
	f.issued++
	f.unsaid += bytes
	if op == wireRead {
		f.lastRead = f.issued
		return f.issued, false
	}
	if f.isBehindReads(op) {
		f.lastFence = f.lastRead
		return f.issued, true
	}
	return f.issued, false
}

// isBehindReads reports whether a request must wait until READs before it are done.
func (f *flow) isBehindReads(op wireOp) bool {
	return op != wireRead && f.lastRead > max(f.done, f.lastFence)
}

// settle issues a READ whose bytes nobody wants, or a WRITE of no bytes, and returns its place. Later WRITEs
// need not wait for it.
func (f *flow) settle() (place uint64) {
	f.issued++
	return f.issued
}

// isDue reports whether the request that was issued last must have a completion, for the sake of room.
func (f *flow) isDue() bool { return f.issued-f.lastSignal >= signalEvery || f.unsaid >= signalBytes }

// signal notes that the request at a place, the last one issued, has a completion.
func (f *flow) signal(place uint64) { f.lastSignal, f.unsaid = place, 0 }

// finish notes that all requests up to a place are done. It returns false if the request at the
// place is not pending.
func (f *flow) finish(place uint64) bool {
	if place <= f.done || place > f.issued {
		return false
	}
	f.done = place
	return true
}

// place returns the latest place that has been issued with these low bits, which are all that a completion
// has.
func (f *flow) place(low uint32) uint64 {
	p := (f.issued &^ (1<<32 - 1)) | uint64(low)
	if p > f.issued && p >= 1<<32 {
		p -= 1 << 32
	}
	return p
}

// isInline reports whether a WRITE of so many bytes travels with its request, so that the card need not fetch them.
func isInline(op wireOp, bytes, limit int) bool { return op != wireRead && bytes > 0 && bytes <= limit }

// A staging is memory that the card knows: a ring, whose bytes are used and freed in order.
// WRITEs are sent from it, and READs come into it.
type staging struct {
	size       uint64
	head, tail uint64 // positions in the stream of all that was used
}

// take uses n bytes that lie together. It returns where they begin, and the position to free
// when they are no longer used; ok is false if there is no room.
func (s *staging) take(n int) (at, end uint64, ok bool) {
	start, bytes := s.tail, uint64(n)
	if rest := s.size - start%s.size; rest < bytes {
		start += rest // leaves the end of the ring unused
	}
	if start+bytes-s.head > s.size {
		return 0, 0, false
	}
	s.tail = start + bytes
	return start % s.size, s.tail, true
}

// free gives back all that was used before a position.
func (s *staging) free(end uint64) { s.head = max(s.head, end) }

// receives counts the entries of a shared receive queue. Each entry is good for one ring. Used
// entries are posted anew, in batches.
type receives struct {
	depth  int
	posted int
	used   uint64 // how many rings have come in all
}

// batch is how many entries are missing, at least, when they are posted anew.
func (r *receives) batch() int { return max(1, r.depth/4) }

// use notes that so many rings have come.
func (r *receives) use(n int) {
	r.posted -= n
	r.used += uint64(n)
}

// isLow reports whether missing would return some.
func (r *receives) isLow() bool { return r.depth-r.posted >= r.batch() }

// missing returns how many entries to post now, and counts them as posted.
func (r *receives) missing() int {
	if !r.isLow() {
		return 0
	}
	n := r.depth - r.posted
	r.posted = r.depth
	return n
}
