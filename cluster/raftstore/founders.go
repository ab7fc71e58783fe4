package raftstore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// Founders are the machines that keep the configuration, as they are after some entry of the log. At first
// they are those of the Founding. A machine that is gone for good is replaced in steps, each of which is an
// entry:
//
//	Forget    the machine is in Gone; it votes still, should it be back
//	Replace   a successor is in Next
//	          the leader adds the successor, which votes on nothing yet, and sends it a snapshot and the log
//	          once it has caught up, the leader lets it vote and takes the vote from the machine that is gone:
//	          Leaving (Raft's joint configuration: a majority of both sets must agree)
//	          the machine that is gone is in Removed
//
// So the number of machines does not change, and no step needs more machines than were needed
// before. The number grows when more are wanted (Want), or when a Refounding has left fewer
// than before: then Replace gives machines the places that are free.
type Founders struct {
	// Version grows with every change. It is 0 as long as the founders are those of the Founding. Its upper bits
	// tell Refoundings apart: see refoundedVersion.
	Version uint64
	// Machines are the founders, with their addresses.
	Machines map[rdma.MachineID]string
	// Gone are the machines among Machines that somebody has forgotten, and that are to be
	// replaced; ascending.
	Gone []rdma.MachineID `json:",omitempty"`
	// Next is to become a founder; nil if no machine is.
	Next *Successor `json:",omitempty"`
	// Leaving is a machine of Machines whose successor has a vote already; nil if there is none.
	Leaving *rdma.MachineID `json:",omitempty"`
	// Removed are machines that were founders, or were about to become founders, and never can again;
	// ascending.
	Removed []rdma.MachineID `json:",omitempty"`
	// Wanted is how many founders there should be, if it is more than there are: see Want, and Refounding. Replace gives
	// votes to machines until there are as many. It never falls.
	Wanted int `json:",omitempty"`
	// Left are the machines among Removed that a Refounding left behind, with their addresses:
	// they are asked whether they keep another configuration.
	Left map[rdma.MachineID]string `json:",omitempty"`
	// Line is that of the configuration: see Refounding.
	Line cluster.Line `json:",omitempty"`
}

// A Successor is a machine that takes the place of a founder, For, or a free place if For is
// the machine itself.
type Successor struct {
	Machine rdma.MachineID
	Address string
	For     rdma.MachineID
}

// IsFurther reports whether the machine takes nobody's place.
func (s Successor) IsFurther() bool { return s.For == s.Machine }

// ErrFounders means that the founders cannot be changed as asked.
var ErrFounders = errors.New("cluster: the machines that keep the configuration cannot be changed so")

func (f Founders) clone() Founders {
	f.Machines, f.Gone, f.Removed = maps.Clone(f.Machines), slices.Clone(f.Gone), slices.Clone(f.Removed)
	f.Left, f.Line = maps.Clone(f.Left), slices.Clone(f.Line)
	if f.Next != nil {
		f.Next = new(*f.Next)
	}
	if f.Leaving != nil {
		f.Leaving = new(*f.Leaving)
	}
	return f
}

// CheckLine returns ErrSplit if what a machine has learned is of another line than what it knows. A machine that
// follows one of two that were refounded must not go over to the other.
func CheckLine(known, learned cluster.Line) error {
	if !known.IsApart(learned) {
		return nil
	}
	return fmt.Errorf("%w: this machine follows one of them, and has found the other: only with an empty data folder can it join that", ErrSplit)
}

// Has reports whether a machine is a founder.
func (f Founders) Has(m rdma.MachineID) bool {
	_, isFounder := f.Machines[m]
	return isFounder
}

// Highest returns the highest number of a machine that is a founder, was one, or is about to become one.
func (f Founders) Highest() (m rdma.MachineID) {
	for _, other := range slices.Concat(slices.Collect(maps.Keys(f.Machines)), f.Removed) {
		m = max(m, other)
	}
	if f.Next != nil {
		m = max(m, f.Next.Machine)
	}
	return m
}

// address returns the address of a founder, or of the machine that is about to become one.
func (f *Founders) address(m rdma.MachineID) string {
	if f.Next != nil && f.Next.Machine == m {
		return f.Next.Address
	}
	return f.Machines[m]
}

// A change is the content of an entry that changes the founders:
//
//	| format 1 | kind 1 | zeros 6 | id 16 | JSON of the rest |
//
// The votes change by entries of the library.
type change struct {
	kind byte
	id   requestID
	changeText
}

// A changeText is what a change says. Which fields count depends on its kind.
type changeText struct {
	Successor
	Wanted int `json:",omitempty"`
}

// The kinds of changes.
const (
	changeForget  = 1 // For is gone; the rest means nothing
	changeReplace = 2
	changeWant    = 3 // raises the number of founders that there should be to Wanted
)

const changeHeaderBytes = 24

func (c *change) encode() []byte {
	b := append([]byte{c.format(), c.kind, 0, 0, 0, 0, 0, 0}, c.id[:]...)
	text, _ := json.Marshal(c.changeText) // never fails
	return append(b, text...)
}

// format returns the change's format. A program that does not know this kind of change must not take it for a damaged
// entry.
func (c *change) format() byte {
	if c.kind == changeWant {
		return wantedFormat
	}
	return foundersFormat
}

// isChange reports whether the content of an entry is a change, and not a swap.
func isChange(b []byte) bool {
	return len(b) > 0 && (b[0] == foundersFormat || b[0] == wantedFormat)
}

func decodeChange(b []byte) (c change, err error) {
	if err := checkFormat("an entry", b, changeHeaderBytes, wantedFormat); err != nil {
		return c, err
	}
	c.kind = b[1]
	copy(c.id[:], b[8:])
	if err := json.Unmarshal(b[changeHeaderBytes:], &c.changeText); err != nil || c.kind < changeForget || c.kind > changeWant || b[0] != c.format() {
		return c, fmt.Errorf("%w: a change of kind %d", ErrDamaged, c.kind)
	}
	return c, nil
}

// apply carries out a change, or returns ErrFounders. A second copy of a change changes nothing.
func (f *Founders) apply(c change) error {
	switch c.kind {
	case changeForget:
		return f.forget(c.For)
	case changeWant:
		f.want(c.Wanted)
		return nil
	default:
		return f.replace(c.Successor)
	}
}

// want notes how many founders there should be, if that is more than there should be so far.
func (f *Founders) want(n int) {
	if n > max(f.Wanted, len(f.Machines)) {
		f.Wanted = n
		f.Version++
	}
}

// forget notes that a founder is gone, unless it has been removed or was forgotten before. The only founder
// cannot be forgotten.
func (f *Founders) forget(m rdma.MachineID) error {
	switch {
	case slices.Contains(f.Removed, m) || slices.Contains(f.Gone, m):
		return nil
	case !f.Has(m):
		return fmt.Errorf("%w: machine %d does not keep the configuration", ErrFounders, m)
	case len(f.Machines) == 1:
		return fmt.Errorf("%w: machine %d alone keeps the configuration", ErrFounders, m)
	}
	f.Gone = insert(f.Gone, m)
	f.Version++
	return nil
}

// replace makes a machine the next founder. If another machine was to be the next founder, that
// is removed: it may be gone itself.
func (f *Founders) replace(s Successor) error {
	switch {
	case f.Next != nil && *f.Next == s:
		return nil
	case f.Has(s.Machine) && (s.IsFurther() || slices.Contains(f.Removed, s.For)):
		return nil // a late copy of the change
	case s.IsFurther() && len(f.Machines) >= f.Wanted:
		return fmt.Errorf("%w: no place is free for machine %d", ErrFounders, s.Machine)
	case !s.IsFurther() && !slices.Contains(f.Gone, s.For):
		return fmt.Errorf("%w: machine %d is not one that was forgotten", ErrFounders, s.For)
	case f.Leaving != nil:
		return fmt.Errorf("%w: machine %d is being replaced; one change at a time", ErrFounders, *f.Leaving)
	case f.Has(s.Machine) || slices.Contains(f.Removed, s.Machine):
		return fmt.Errorf("%w: machine %d keeps the configuration, or has kept it before", ErrFounders, s.Machine)
	case s.Address == "" || f.hasAddress(s.Address, s.For):
		return fmt.Errorf("%w: machine %d has the address %q: each needs its own", ErrFounders, s.Machine, s.Address)
	}
	if f.Next != nil && f.Next.Machine != s.Machine {
		f.Removed = insert(f.Removed, f.Next.Machine) // the former successor may have a part of the log by now
	}
	f.Next = new(s)
	f.Version++
	return nil
}

// hasAddress reports whether a founder has an address, without regard to the given one: a successor may
// have the address of the machine that it replaces.
func (f *Founders) hasAddress(address string, without rdma.MachineID) bool {
	for m, a := range f.Machines {
		if a == address && m != without {
			return true
		}
	}
	return false
}

// vote notes that the successor votes from now on, together with the machine that it replaces, if any.
func (f *Founders) vote() {
	f.Machines[f.Next.Machine] = f.Next.Address
	if !f.Next.IsFurther() {
		f.Leaving = new(f.Next.For)
	}
	f.Next = nil
	f.Version++
}

// leave notes that the machine that was replaced votes no more. It does nothing if the last successor took a
// free place.
func (f *Founders) leave() {
	if f.Leaving == nil {
		return
	}
	m := *f.Leaving
	delete(f.Machines, m)
	f.Gone = slices.DeleteFunc(f.Gone, func(g rdma.MachineID) bool { return g == m })
	f.Removed, f.Leaving = insert(f.Removed, m), nil
	f.Version++
}

// insert adds a machine to an ascending list.
func insert(list []rdma.MachineID, m rdma.MachineID) []rdma.MachineID {
	i, isThere := slices.BinarySearch(list, m)
	if isThere {
		return list
	}
	return slices.Insert(list, i, m)
}

// checkForget refuses to forget a member of the configuration, which is not gone. An empty configuration is none.
func checkForget(m rdma.MachineID, configuration []byte) error {
	if len(configuration) == 0 {
		return nil
	}
	c, err := cluster.Decode("the configuration store", configuration)
	if err != nil {
		return err
	}
	if _, isMember := c.Member(m); isMember {
		return fmt.Errorf("%w: machine %d is a member of configuration %d: it is not gone", ErrFounders, m, c.ID)
	}
	return nil
}

// encodeFounders returns the part of a snapshot that has the founders.
func encodeFounders(f *Founders) []byte {
	text, _ := json.Marshal(f) // never fails
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
}

// decodeFounders returns the founders at the beginning of b, and what follows.
func decodeFounders(b []byte) (f *Founders, rest []byte, err error) {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
		return nil, nil, fmt.Errorf("%w: a snapshot whose founders have %d bytes", ErrDamaged, len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	f = new(Founders)
	if err := json.Unmarshal(b[8:8+n], f); err != nil || len(f.Machines) == 0 {
		return nil, nil, fmt.Errorf("%w: the founders of a snapshot", ErrDamaged)
	}
	return f, b[8+n:], nil
}
