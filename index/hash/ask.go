package hash

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/lookup"
)

// keyCost is the processor time of a key in a message of many keys, at both ends together. It is much the same on every network,
// but for the bytes. A READ among many costs more over sockets, and less with a card or between processes.
const keyCost = 600 * time.Nanosecond

// asksFrom returns how many keys of one machine are looked up together by a message rather than by READs.
func asksFrom(w lookup.Way, c rdma.Costs) int {
	switch {
	case w == lookup.TwoSided:
		return 1
	case w != lookup.Measured || c.Read <= keyCost:
		return math.MaxInt
	}
	return 1 + int(max(c.Message-c.Wait, 0)/(c.Read-keyCost))
}

// An ask is a message to the primary of keys of one pipeline.
//
//	request: | anchor | key's length 2 | key | ...
//	reply:   | answer 1 | value's length 4 | value | ...      as many as there are keys
type ask struct {
	to      rdma.MachineID
	keys    []elsewhere
	request []byte
	reply   []byte
	err     error
}

// The answers for a key.
const (
	answerAbsent byte = iota
	answerFound
	answerMoved // another machine is the key's primary: whoever asks has to READ, and thereby learns of splits
)

// answerHeaderBytes are the bytes of an answer without the value.
const answerHeaderBytes = 5

// add adds a key if there is room for it, and for an answer of a pair that is not outside of its slot.
func (a *ask) add(e elsewhere, dataBytes, bytesMax int) bool {
	isLong := len(a.request)+2+len(e.key) > bytesMax || (len(a.keys)+1)*(answerHeaderBytes+dataBytes) > bytesMax
	if isLong && len(a.keys) > 0 {
		return false
	}
	a.keys, a.request = append(a.keys, e), appendKey(a.request, e.key)
	return true
}

// send sends the message and waits for the reply.
func (a *ask) send(tb *Table) {
	tb.stats.shipped.Add(1)
	a.reply, a.err = tb.m.ShipTo(context.Background(), a.to, handlerLookups, a.request)
}

// askPrimaries answers the keys of l.far: by one message to each primary of enough of them, all at once, and by READs. If a
// primary does not answer, READs find the keys or the reason.
func (l *pipeline) askPrimaries() error {
	if len(l.far) < l.tb.asksFrom {
		return l.readAll(l.far)
	}
	var sent []*ask
	for _, a := range l.share() {
		if a.request != nil && len(a.keys) >= l.tb.asksFrom {
			sent = append(sent, a)
			continue
		}
		if err := l.readAll(a.keys); err != nil {
			return err
		}
	}
	l.sendAll(sent)
	for _, a := range sent {
		if err := l.settleAsk(a); err != nil {
			return err
		}
	}
	return nil
}

// share divides the keys of l.far into asks. Keys whose primary is not known get one without a request.
func (l *pipeline) share() (asks []*ask) {
	for _, e := range l.far {
		to, err := l.tb.m.Primary(e.s.first.Addr)
		if err != nil {
			asks = append(asks, &ask{keys: []elsewhere{e}})
			continue
		}
		asks = l.shareOut(asks, to, e)
	}
	return asks
}

// shareOut adds a key to an ask of its primary that has room, or to a new one.
func (l *pipeline) shareOut(asks []*ask, to rdma.MachineID, e elsewhere) []*ask {
	bytesMax := l.tb.m.MessageBodyMax()
	for _, a := range asks {
		if a.to == to && a.request != nil && a.add(e, l.o.dataBytes, bytesMax) {
			return asks
		}
	}
	a := &ask{to: to, request: l.tb.anchor.Append(nil)}
	a.add(e, l.o.dataBytes, bytesMax)
	return append(asks, a)
}

// sendAll sends the asks, and returns when all have been answered or have failed.
func (l *pipeline) sendAll(asks []*ask) {
	if len(asks) == 0 {
		return
	}
	c := l.tb.m.Clock()
	ended, left := c.NewEvent(), atomic.Int32{}
	left.Store(int32(len(asks)))
	send := func(a *ask) {
		a.send(l.tb)
		if left.Add(-1) == 0 {
			ended.Set()
		}
	}
	for _, a := range asks[1:] {
		c.Go(func() { send(a) })
	}
	send(asks[0])
	ended.Wait()
}

// settleAsk answers the keys of an ask by its reply, and by READs what that does not answer.
func (l *pipeline) settleAsk(a *ask) error {
	if a.err != nil {
		return l.readAll(a.keys)
	}
	b := a.reply
	for _, e := range a.keys {
		answer, value, rest, err := decodeAnswer(b)
		if err != nil {
			return err
		}
		if b = rest; answer == answerMoved {
			if err := l.read(e); err != nil {
				return err
			}
			continue
		}
		l.answer(e.i, value, answer == answerFound)
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes after the last answer", errMessage, len(b))
	}
	return nil
}

func appendAnswer(b []byte, answer byte, value []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(append(b, answer), uint32(len(value))), value...)
}

func decodeAnswer(b []byte) (answer byte, value, rest []byte, err error) {
	if len(b) < answerHeaderBytes || b[0] > answerMoved {
		return 0, nil, nil, fmt.Errorf("%w: answer", errMessage)
	}
	n := uint64(binary.LittleEndian.Uint32(b[1:]))
	if answer, b = b[0], b[answerHeaderBytes:]; uint64(len(b)) < n {
		return 0, nil, nil, fmt.Errorf("%w: a value of %d bytes", errMessage, n)
	}
	return answer, b[:n:n], b[n:], nil
}

// lookups looks many keys up for another machine, by the reads of this one: it sends no messages. It reads what is elsewhere, too, because
// it may be this machine that does not know of a split yet.
func (s *Server) lookups(_ context.Context, request []byte) ([]byte, error) {
	anchor, rest, err := decodeAnchorPtr(request)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for len(rest) > 0 {
		var key []byte
		if key, rest, err = decodeKey(rest); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	tb, err := s.reader(anchor)
	if err != nil {
		return nil, err
	}
	answers := make([][]byte, len(keys))
	err = tb.LookupMany(keys, func(i int, value []byte, ok bool) { answers[i] = s.answerTo(tb, keys[i], value, ok) })
	return bytes.Join(answers, nil), err
}

// answerTo returns the answer for a key that has been looked up.
func (s *Server) answerTo(tb *Table, key, value []byte, ok bool) []byte {
	home, err := tb.Home(key)
	switch {
	case err != nil || !s.m.IsPrimary(home):
		return appendAnswer(nil, answerMoved, nil)
	case !ok:
		return appendAnswer(nil, answerAbsent, nil)
	}
	return appendAnswer(nil, answerFound, value)
}

// reader returns a handle on a message's table that sends no messages. It does not keep the handle if
// the anchor points to no table.
func (s *Server) reader(anchor region.Ptr) (*Table, error) {
	s.mu.Lock()
	tb := s.readers[anchor]
	if tb == nil {
		tb = OpenWith(s.m, anchor, Options{Lookups: lookup.OneSided})
		s.readers[anchor] = tb
	}
	s.mu.Unlock()
	if _, err := tb.open(); err != nil {
		s.Forget(anchor)
		return nil, err
	}
	return tb, nil
}
