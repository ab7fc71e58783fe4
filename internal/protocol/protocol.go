// Package protocol numbers the versions of everything that machines of an instance send to each
// other, or leave for each other in memory: calls, greetings, messages, records, leases, stored
// configurations. A program speaks a range of versions, and states it wherever machines meet
// (package rdma/call in every datagram, package cluster in every configuration).
//
//	version 1   programs that do not say what they speak
//	version 2   ranges; configurations of format 4; greetings that say their version
//	version 3   moves of replicas, machines that are being drained; configurations of format 5
//	version 4   primaries that are handed over, and stay as backups; numbers of replicas that change;
//	            configurations of format 6
//
// Two machines speak the highest version that both know. Data that a third machine may have to
// read, records and the configuration, have the version of the instance: the highest that all its
// members know (cluster.Configuration.Speaks). That version never falls, because what has been
// written stays.
package protocol

import (
	"errors"
	"fmt"
)

// A Version is one number of the protocol.
type Version uint8

// The versions that there have been.
const (
	First     Version = 1
	Ranges    Version = 2
	Moves     Version = 3
	Handovers Version = 4
	Resizes   Version = 4
)

// A Range is the versions that a program speaks. Programs that do not know ranges state the zero
// Range: see Stated.
type Range struct{ Min, Max Version }

// Own is the range of this program.
var Own = Range{First, Resizes}

// ErrRange means that machines have no version of the protocol in common.
var ErrRange = errors.New("protocol: no version of the protocol that both speak")

// Stated returns the range that r means: version 1 alone for the zero Range.
func (r Range) Stated() Range {
	if r == (Range{}) {
		return Range{First, First}
	}
	return r
}

// IsValid reports whether r is a range.
func (r Range) IsValid() bool { return r.Min >= First && r.Min <= r.Max }

// Has reports whether a program that speaks r speaks v.
func (r Range) Has(v Version) bool { return r.Min <= v && v <= r.Max }

// Overlaps reports whether r and s have a version in common.
func (r Range) Overlaps(s Range) bool { return r.Min <= s.Max && s.Min <= r.Max }

func (r Range) String() string {
	if r.Min == r.Max {
		return fmt.Sprintf("version %d", r.Min)
	}
	return fmt.Sprintf("versions %d to %d", r.Min, r.Max)
}

// A Speaker is a program with its range, described for errors.
type Speaker struct {
	Name string
	Range
}

// Machine returns a machine as a Speaker. r is the range that the machine states.
func Machine[ID ~uint16](id ID, r Range) Speaker {
	return Speaker{Name: fmt.Sprintf("machine %d", id), Range: r.Stated()}
}

// Check returns ErrRange if the speaker's range is not valid.
func (s Speaker) Check() error {
	if s.IsValid() {
		return nil
	}
	return fmt.Errorf("%w: %s says that it speaks versions %d to %d, which is no range: start %s with another farmsql", ErrRange, s.Name, s.Min, s.Max, s.Name)
}

// Common returns the highest version that both speakers know. If there is none, it fails with a
// *RangeError.
func Common(a, b Speaker) (Version, error) {
	if a.Overlaps(b.Range) {
		return min(a.Max, b.Max), nil
	}
	return 0, &RangeError{a, b}
}

// A RangeError is the ErrRange of two speakers. It says what both speak and what to do.
type RangeError struct{ A, B Speaker }

func (e *RangeError) Error() string {
	older, newer := e.A, e.B
	if newer.Max < older.Max {
		older, newer = newer, older
	}
	return fmt.Sprintf("%v: %s speaks %v, %s speaks %v: start %s with a newer farmsql, which speaks version %d, or %s with an older one",
		ErrRange, older.Name, older.Range, newer.Name, newer.Range, older.Name, newer.Min, newer.Name)
}

func (e *RangeError) Unwrap() error { return ErrRange }
