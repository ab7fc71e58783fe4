package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// A call is what a client asks a machine to do:
//
//	| operation 1 | has suspect 1 | suspect 2 | patience in ms 4 | swap |
//
// It is the payload of a frame. The suspect is a machine that the client takes to have failed;
// earlier programs write zeros there, and do not read them. Operations without a swap use only
// the swap's identifier; operationStanding has the standing of the machine that asks in place
// of the configuration. operationChange has the encoding of the change in place of the swap's.
type call struct {
	operation byte
	suspect   *rdma.MachineID // the machine that the client suspects; nil if it suspects none
	patience  time.Duration   // how long the client waits
	swap      swap
	change    change // the change of operationChange
}

const (
	operationLoad     = 1
	operationSwap     = 2
	operationFounders = 3 // asks for the founders; this operation and the next are of knowsFormat 2
	operationChange   = 4 // changes the founders
	operationStanding = 5 // asks a machine that was left behind; of knowsFormat 3

	callHeaderBytes = 8
)

// encode returns the frame of a call.
func (c *call) encode() []byte {
	payload := []byte{c.operation, 0, 0, 0}
	if c.suspect != nil {
		payload[1] = 1
		binary.LittleEndian.PutUint16(payload[2:], uint16(*c.suspect))
	}
	payload = binary.LittleEndian.AppendUint32(payload, uint32(c.patience.Milliseconds()))
	if c.operation == operationChange {
		return payloadFrame(frameCall, append(payload, c.change.encode()...))
	}
	return payloadFrame(frameCall, append(payload, c.swap.encode()...))
}

// id returns the identifier of the request.
func (c *call) id() requestID {
	if c.operation == operationChange {
		return c.change.id
	}
	return c.swap.id
}

// needsLeader reports whether a machine cannot carry out the call without the leader.
func (c *call) needsLeader() bool { return c.operation == operationLoad || c.changes() }

// changes reports whether the call is to change something.
func (c *call) changes() bool { return c.operation == operationSwap || c.operation == operationChange }

func readCall(r io.Reader) (c call, err error) {
	payload, err := readFrameOf(frameCall, r)
	if err != nil {
		return c, err
	}
	if len(payload) < callHeaderBytes || payload[0] < operationLoad || payload[0] > operationStanding {
		return c, fmt.Errorf("%w: a call of %d bytes", errGarbage, len(payload))
	}
	c.operation = payload[0]
	if payload[1] != 0 {
		c.suspect = new(rdma.MachineID(binary.LittleEndian.Uint16(payload[2:])))
	}
	c.patience = time.Duration(binary.LittleEndian.Uint32(payload[4:])) * time.Millisecond
	if content := payload[callHeaderBytes:]; c.operation == operationChange {
		c.change, err = decodeChange(content)
	} else {
		c.swap, err = decodeSwap(content)
	}
	if err != nil {
		return c, fmt.Errorf("%w: a call: %w", errGarbage, err)
	}
	return c, nil
}

// An outcome is what has become of a call.
type outcome byte

const (
	outcomeDone outcome = iota
	outcomeMoved
	outcomeMovedOn
	outcomeFailed  // a swap may be carried out nevertheless
	outcomeRefused // a change of the founders
)

// A result answers a call:
//
//	| id 16 | outcome 1 | zeros 7 | content |
//
// It is the payload of a frame.
type result struct {
	id      requestID
	outcome outcome
	content []byte // the configuration that was loaded, or the text of an error
}

const resultHeaderBytes = 24

// resultOf returns the result of a call that has ended with the given configuration or error.
func resultOf(id requestID, configuration []byte, err error) result {
	switch {
	case err == nil:
		return result{id, outcomeDone, configuration}
	case errors.Is(err, errMovedOn):
		return result{id, outcomeMovedOn, nil}
	case errors.Is(err, cluster.ErrMoved):
		return result{id, outcomeMoved, nil}
	}
	if errors.Is(err, ErrFounders) {
		return result{id, outcomeRefused, []byte(err.Error())}
	}
	return result{id, outcomeFailed, []byte(err.Error())}
}

// encode returns the frame of a result.
func (r *result) encode() []byte {
	payload := append(r.id[:], byte(r.outcome), 0, 0, 0, 0, 0, 0, 0)
	return payloadFrame(frameResult, append(payload, r.content...))
}

func readResult(in io.Reader) (r result, err error) {
	payload, err := readFrameOf(frameResult, in)
	if err != nil {
		return r, err
	}
	if len(payload) < resultHeaderBytes || outcome(payload[16]) > outcomeRefused {
		return r, fmt.Errorf("%w: a result of %d bytes", errGarbage, len(payload))
	}
	return result{requestID(payload[:16]), outcome(payload[16]), payload[resultHeaderBytes:]}, nil
}
