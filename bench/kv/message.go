package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// Lookups by messages, as in HERD (Design Guidelines, section 4.3): a request has the keys of a batch that have the
// same primary, the reply an answer for each. The primary looks the keys up together, so that its cache misses overlap.
//
//	request: | key 16 | key 16 | ...
//	answer:  | found 1 | length 2 | value, in as many bytes as the longest has |
const (
	handlerLookups    = lookup.Users // the first number that farmsql does not use itself
	answerHeaderBytes = 3
)

// errMessage means that a request or a reply is malformed.
var errMessage = errors.New("kv: bad message")

// A server answers requests at one machine.
type server struct {
	tb          *hash.Table
	answerBytes int
}

func answerBytes(valueBytes int) int { return answerHeaderBytes + valueBytes }

// serve looks up the keys of a request.
func (s server) serve(_ context.Context, request []byte) ([]byte, error) {
	if len(request)%keyBytes != 0 {
		return nil, fmt.Errorf("%w: a request of %d bytes", errMessage, len(request))
	}
	keys := make([][]byte, len(request)/keyBytes)
	for i := range keys {
		keys[i] = request[i*keyBytes:][:keyBytes]
	}
	reply := make([]byte, len(keys)*s.answerBytes)
	var tooLong error
	err := s.tb.LookupMany(keys, func(i int, value []byte, ok bool) {
		if len(value) > s.answerBytes-answerHeaderBytes {
			tooLong = fmt.Errorf("%w: key %x has a value of %d bytes", errMessage, keys[i], len(value))
			return
		}
		putAnswer(reply[i*s.answerBytes:], value, ok)
	})
	return reply, errors.Join(err, tooLong)
}

func putAnswer(b, value []byte, ok bool) {
	if ok {
		b[0] = 1
	}
	binary.LittleEndian.PutUint16(b[1:], uint16(len(value)))
	copy(b[answerHeaderBytes:], value)
}

// decodeReply calls visit for each of n answers.
func decodeReply(b []byte, n, answerBytes int, visit func(i int, value []byte, ok bool)) error {
	if len(b) != n*answerBytes {
		return fmt.Errorf("%w: %d bytes for %d answers", errMessage, len(b), n)
	}
	for i := range n {
		answer := b[i*answerBytes:][:answerBytes]
		length := int(binary.LittleEndian.Uint16(answer[1:]))
		if answer[0] > 1 || length > answerBytes-answerHeaderBytes {
			return fmt.Errorf("%w: answer %d", errMessage, i)
		}
		visit(i, answer[answerHeaderBytes:][:length], answer[0] == 1)
	}
	return nil
}

// A messageExecutor looks keys up by messages.
type messageExecutor struct {
	nativeExecutor
	m           *txn.Machine
	answerBytes int
	keysMax     int       // the most keys for one message, so that neither it nor its reply is too long
	asks        []*ask    // the asks of the batch; the first has this machine's own keys
	one         [1][]byte // the key of lookup, which is a batch of one
	found       bool      // whether lookup has found its key
}

// An ask is the part of a batch whose keys have the same primary.
type ask struct {
	primary rdma.MachineID
	which   []int // the keys' indexes in the batch
	keys    [][]byte
	reply   []byte
	err     error
}

func newMessageExecutor(m *txn.Machine, e nativeExecutor) *messageExecutor {
	bytes := answerBytes(len(e.buf))
	return &messageExecutor{
		nativeExecutor: e, m: m, answerBytes: bytes, keysMax: max(1, m.MessageBodyMax()/max(keyBytes, bytes)), asks: []*ask{{primary: m.ID()}},
	}
}

// learn makes this machine learn all shards of the table, by READs of n of all its keys. Messages would
// never show it a split: the other machine answers in any case, and reads the key elsewhere if the
// key has moved.
func (e *messageExecutor) learn(all, n int) error {
	keys := make([][]byte, min(all, n))
	for i := range keys {
		keys[i] = fillKey(make([]byte, keyBytes), i*(all/len(keys)))
	}
	return e.reader.LookupMany(keys, func(int, []byte, bool) {})
}

func (e *messageExecutor) lookup(_ context.Context, key []byte) ([]byte, error) {
	e.one[0] = key
	err := e.lookupMany(e.one[:], func(_ int, value []byte, ok bool) {
		e.buf, e.found = append(e.buf[:0], value...), ok
	})
	if err == nil && !e.found {
		err = goneError(key)
	}
	return e.buf, err
}

// lookupMany sends all other machines their keys at once. Meanwhile it looks up this machine's own keys.
func (e *messageExecutor) lookupMany(keys [][]byte, visit func(i int, value []byte, ok bool)) error {
	if err := e.share(keys); err != nil {
		return err
	}
	own, others := e.asks[0], e.asks[1:]
	var asking sync.WaitGroup
	for i, k := range others {
		if len(own.keys) == 0 && i == len(others)-1 {
			k.ask(e.m) // no key is this machine's own, so wait for this reply instead of starting a goroutine
			continue
		}
		asking.Go(func() { k.ask(e.m) })
	}
	err := e.reader.LookupMany(own.keys, func(i int, value []byte, ok bool) { visit(own.which[i], value, ok) })
	asking.Wait()
	for _, k := range others {
		if err == nil {
			err = k.visit(e.answerBytes, visit)
		}
	}
	return err
}

// share divides keys into asks, by their primaries.
func (e *messageExecutor) share(keys [][]byte) error {
	own := e.asks[0]
	e.asks, own.which, own.keys = e.asks[:1], own.which[:0], own.keys[:0]
	for i, key := range keys {
		home, err := e.reader.Home(key)
		if err != nil {
			return err
		}
		primary, err := e.m.Primary(home)
		if err != nil {
			return err
		}
		k := e.askWithRoom(primary)
		k.which, k.keys = append(k.which, i), append(k.keys, key)
	}
	return nil
}

// askWithRoom returns the ask that takes the next key of a primary: a new one if the others are full.
// That with this machine's own keys is never full, because it is no message.
func (e *messageExecutor) askWithRoom(primary rdma.MachineID) *ask {
	for _, k := range e.asks {
		if k.primary == primary && (primary == e.m.ID() || len(k.keys) < e.keysMax) {
			return k
		}
	}
	k := &ask{primary: primary}
	e.asks = append(e.asks, k)
	return k
}

// ask sends the message and waits for the reply.
func (k *ask) ask(m *txn.Machine) {
	k.reply, k.err = m.ShipTo(context.Background(), k.primary, handlerLookups, slices.Concat(k.keys...))
}

// visit calls the function visit for the answer to each key, with the key's index in the batch.
func (k *ask) visit(answerBytes int, visit func(i int, value []byte, ok bool)) error {
	if k.err != nil {
		return k.err
	}
	return decodeReply(k.reply, len(k.keys), answerBytes, func(i int, value []byte, ok bool) { visit(k.which[i], value, ok) })
}
