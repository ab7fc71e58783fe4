package skiplist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"weak"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/worker"
)

// ErrKey means that a key is empty or too long.
var ErrKey = errors.New("skiplist: a key has 1 to 65,535 bytes")

// handler names skip lists among the structures whose owners answer lookups.
const handler = lookup.Users

// A List is one machine's handle on a skip list. It is safe for concurrent use. A machine should
// have only one handle on each list, because a transaction's changes are not seen through another
// handle.
type List struct {
	m      *txn.Machine
	head   region.Ptr
	client *lookup.Client
	cache  *cache
}

// Create makes an empty list in transaction t, near hint, and returns the pointer to its head.
func Create(t *txn.Tx, hint region.Addr) (region.Ptr, error) {
	p, b, err := t.Alloc(nodeBytes(heightMax, 0, 0), hint)
	if err == nil {
		format(b, heightMax, nil, nil)
	}
	return p, err
}

// Open returns machine m's handle on the list with this head. It reads nothing.
func Open(m *txn.Machine, head region.Ptr, w lookup.Way) *List {
	l := &List{m: m, head: head, client: lookup.NewClient(m, handler, w), cache: new(cache)}
	c := weak.Make(l.cache)
	hook := m.OnEpoch(func() {
		if c := c.Value(); c != nil {
			c.reset()
		}
	})
	runtime.AddCleanup(l, worker.EpochHook.Cancel, hook)
	return l
}

// Serve makes m answer other machines' lookups. Each machine calls it once.
func Serve(m *txn.Machine) {
	lookup.Serve(m, handler, func(_ context.Context, request []byte) (lookup.Answer, error) { return answer(m, request) })
}

// answer looks a key up for another machine.
func answer(m *txn.Machine, request []byte) (lookup.Answer, error) {
	head, err := region.DecodePtr(request)
	if err != nil || head.IsNil() {
		return lookup.Answer{}, fmt.Errorf("%w: request of %d bytes", ErrCorrupt, len(request))
	}
	op := m.Start()
	defer op.End()
	s := &search{list: &List{m: m, head: head}, key: request[region.PtrBytes:], hasGuessed: true}
	err = lookup.Walk(lookup.Reading(op), s)
	return lookup.Answer{Found: s.found, Value: s.value, Sources: s.sources}, err
}

// Asked returns the number of lookups of this handle that the owner has answered.
func (l *List) Asked() uint64 { return l.client.Asked() }

// Lookup returns the value of key, outside of any transaction: the answer was true at some moment during the call.
func (l *List) Lookup(ctx context.Context, key []byte) (value []byte, ok bool, err error) {
	op := l.m.Start()
	defer op.End()
	s := &search{list: l, key: key}
	if err := l.client.Find(ctx, lookup.Reading(op), s); err != nil {
		return nil, false, err
	}
	return s.value, s.found, nil
}

// Get returns the value of key as transaction t sees it, valid until t ends. t can commit only if
// the answer still holds then.
func (l *List) Get(t *txn.Tx, key []byte) (value []byte, ok bool, err error) {
	if t.Local(l) != nil { // t has changed the list, so objects that others have committed are not what t sees
		w, err := l.way(t, key)
		if err != nil || w.found == nil {
			return nil, false, err
		}
		return bytes.Clone(w.found.value()), true, nil
	}
	q := &question{search: search{list: l, key: bytes.Clone(key)}}
	if err := l.client.Find(t.Context(), t, &q.search); err != nil {
		return nil, false, err
	}
	t.Expect(q)
	return q.value, q.found, nil
}

// Nodes returns the pointers to all objects of the list.
func (l *List) Nodes(t *txn.Tx) (ptrs []region.Ptr, err error) {
	for p := l.head; !p.IsNil(); {
		ptrs = append(ptrs, p)
		n, err := read(t, p)
		if err != nil {
			return nil, err
		}
		if p, err = n.next(0); err != nil {
			return nil, err
		}
	}
	return ptrs, nil
}
