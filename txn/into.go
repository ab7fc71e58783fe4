package txn

import "github.com/farmsql/farmsql/region"

// ReadInto is like Read, for a caller that looks at each object once: the payload is valid until the
// next ReadInto, and the transaction keeps the object's version only. A later Read of the object reads
// it again, and is a conflict if it has changed meanwhile. room is memory for the payloads, which
// ReadInto replaces if it is too small. If the transaction has read or written the object already, or
// has read any objects ahead, ReadInto calls Read. An object that only ReadInto has read is read again, at
// a version of its own: if the versions differ, the transaction cannot commit.
func (t *Tx) ReadInto(p region.Ptr, room *[]byte) ([]byte, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if t.writes.Find(p.Addr) >= 0 || t.reads.Find(p.Addr) >= 0 || len(t.ahead.found) > 0 {
		return t.Read(p)
	}
	n := p.Capacity()
	if len(*room) < n {
		*room = make([]byte, n)
	}
	payload := (*room)[:n:n]
	v, ok := t.op.ReadHere(p, payload)
	if !ok {
		var err error
		if v, err = t.op.ReadWithin(t.ctx, p, payload, t.patience()); err != nil {
			return nil, t.doom(conflictFrom(err, p))
		}
	}
	if t.looked.Add(p, v) {
		t.validated.looked = 0 // the index is of an entry that has moved
	}
	return payload, nil
}
