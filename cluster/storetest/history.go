package storetest

import (
	"cmp"
	"fmt"
	"slices"
)

// An outcome is what the caller of a swap was told.
type outcome int

const (
	done outcome = iota
	moved
	unknown // the swap may have been carried out, or may still be
)

// An operation is a load that has returned a configuration, or a swap.
type operation struct {
	machine    int
	isSwap     bool
	old        uint64 // the revision that a swap replaces
	revision   uint64 // loaded, or written; 0: there is none
	writer     uint64 // a swap's own number; for a load, the number of the swap that wrote the result
	outcome    outcome
	begin, end int64 // ordered in real time: an operation was over when another began if its end is smaller
}

func (o operation) String() string {
	if !o.isSwap {
		return fmt.Sprintf("load at machine %d [%d, %d] of revision %d by swap %d", o.machine, o.begin, o.end, o.revision, o.writer)
	}
	return fmt.Sprintf("swap %d at machine %d [%d, %d] of revision %d to %d: %s", o.writer, o.machine, o.begin, o.end, o.old, o.revision,
		[]string{"done", "moved", "unknown"}[o.outcome])
}

// mayApply reports whether a swap was carried out, as far as its caller knows.
func (o operation) mayApply() bool { return o.isSwap && o.outcome != moved }

// shows returns the revision that was current at some moment of the operation.
func (o operation) shows() (revision uint64, ok bool) {
	return o.revision, !o.isSwap || o.outcome == done
}

// A history is what was asked of a store, and what it answered. It is linearizable if
//
//   - at most one swap of each revision is done, and what was loaded at a revision is always the same,
//     and was written by a swap that had begun before;
//   - no operation shows a lower revision than one that was over when it began, and a swap that was done
//     shows a higher one;
//   - a swap finds its revision moved only if another swap of that revision may have been carried out
//     before it returned, or if the store was never at that revision.
//
// These suffice: revisions order all swaps that were carried out, and a load has its place behind
// the swap that it shows.
type history []operation

// problems returns how the history violates this.
func (h history) problems() (all []string) {
	all = append(all, h.checkWriters()...)
	all = append(all, h.checkOrder()...)
	return append(all, h.checkMoved()...)
}

// checkWriters checks the first condition of history.
func (h history) checkWriters() (all []string) {
	swaps := make(map[uint64]operation)    // indexed by writer
	replaced := make(map[uint64]operation) // the done swap, by the revision that it replaces
	at := make(map[uint64]operation)       // any operation that shows a revision
	for _, o := range h {
		if o.isSwap {
			swaps[o.writer] = o
		}
	}
	for _, o := range h {
		if o.isSwap && o.outcome == done {
			if other, isTwice := replaced[o.old]; isTwice {
				all = append(all, fmt.Sprintf("two swaps of one revision: %v, %v", other, o))
			}
			replaced[o.old] = o
		}
		revision, ok := o.shows()
		if !ok || revision == 0 {
			continue
		}
		if other, isKnown := at[revision]; isKnown && other.writer != o.writer {
			all = append(all, fmt.Sprintf("two configurations of one revision: %v, %v", other, o))
		}
		at[revision] = o
		if by, isKnown := swaps[o.writer]; !isKnown || !by.mayApply() || by.revision != revision || by.begin > o.end {
			all = append(all, fmt.Sprintf("nobody has written this before: %v", o))
		}
	}
	return all
}

// checkOrder checks the second condition of history. A swap that was done shows a higher revision if it has
// replaced one that is not lower.
func (h history) checkOrder() (all []string) {
	byBegin, byEnd := slices.Clone(h), slices.Clone(h)
	slices.SortFunc(byBegin, func(a, b operation) int { return cmp.Compare(a.begin, b.begin) })
	slices.SortFunc(byEnd, func(a, b operation) int { return cmp.Compare(a.end, b.end) })
	var highest operation // the operation that shows the highest revision, of those that were over
	next := 0
	for _, o := range byBegin {
		for ; next < len(byEnd) && byEnd[next].end < o.begin; next++ {
			if revision, ok := byEnd[next].shows(); ok && revision > highest.revision {
				highest = byEnd[next]
			}
		}
		revision, ok := o.shows()
		if ok && (revision < highest.revision || (o.isSwap && o.old < highest.revision)) {
			all = append(all, fmt.Sprintf("back in time: %v, then %v", highest, o))
		}
	}
	return all
}

// checkMoved checks the third condition of history.
func (h history) checkMoved() (all []string) {
	earliest := make(map[uint64]int64) // when a swap of a revision that may be carried out began first
	reached := map[uint64]bool{0: true}
	for _, o := range h {
		if revision, ok := o.shows(); ok {
			reached[revision] = true
		}
		if begin, isKnown := earliest[o.old]; o.mayApply() && (!isKnown || o.begin < begin) {
			earliest[o.old] = o.begin
		}
	}
	for _, o := range h {
		if begin, isKnown := earliest[o.old]; o.isSwap && o.outcome == moved && reached[o.old] && (!isKnown || begin > o.end) {
			all = append(all, fmt.Sprintf("nobody has moved it: %v", o))
		}
	}
	return all
}
