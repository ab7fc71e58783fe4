package tcp

import (
	"encoding/binary"

	"github.com/farmsql/farmsql/rdma"
)

// Frames of operations, and answers. The bytes of a WRITE follow its frame; the bytes that a READ
// has read follow its answer. Operations of a connection are numbered from 0.
//
//	frame:   | operation 1 | flags 1 | reserved 2 | bytes 4 | key 8 | offset 8 |
//	answer:  | outcome 1 | reserved 3 | bytes 4 | operation's number 8 |
const (
	frameBytes  = 24
	answerBytes = 16
)

// asks is the flag of an operation that the agent answers even if it succeeds.
const asks = 1

// opAsk is an operation that does nothing but ask.
const opAsk rdma.Op = 0xff

// A frame is an operation on its way to an agent.
type frame struct {
	op    rdma.Op
	flags byte
	bytes int
	key   rdma.Key
	off   uint64
}

func (f *frame) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, byte(f.op), f.flags, 0, 0)
	b = le.AppendUint32(b, uint32(f.bytes))
	b = le.AppendUint64(b, uint64(f.key))
	return le.AppendUint64(b, f.off)
}

func decodeFrame(b []byte) frame {
	le := binary.LittleEndian
	return frame{rdma.Op(b[0]), b[1], int(le.Uint32(b[4:])), rdma.Key(le.Uint64(b[8:])), le.Uint64(b[16:])}
}

// An outcome is how an operation has ended at the agent.
type outcome byte

const (
	done outcome = iota
	unknownKey
	outOfRange
)

// outcomeOf returns the outcome for an error of an agent's Copier. While the agent runs, the Copier has not
// ended, so any error but rdma.ErrKey is rdma.ErrRange.
func outcomeOf(err error) outcome {
	switch err {
	case nil:
		return done
	case rdma.ErrKey:
		return unknownKey
	}
	return outOfRange
}

// err returns the error that stands for the outcome; ok is false if there is no such outcome.
func (o outcome) err() (err error, ok bool) {
	switch o {
	case done:
		return nil, true
	case unknownKey:
		return rdma.ErrKey, true
	case outOfRange:
		return rdma.ErrRange, true
	}
	return nil, false
}

// An answer is the end of an operation, on its way to the queue.
type answer struct {
	outcome outcome
	bytes   int
	number  uint64
}

func (a *answer) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, byte(a.outcome), 0, 0, 0)
	b = le.AppendUint32(b, uint32(a.bytes))
	return le.AppendUint64(b, a.number)
}

func decodeAnswer(b []byte) answer {
	le := binary.LittleEndian
	return answer{outcome(b[0]), int(le.Uint32(b[4:])), le.Uint64(b[8:])}
}
