package cluster

import "slices"

// A Line has a number, which is random, for each time that the configuration store of an instance was lost and begun
// anew with what one machine had of it; the oldest first. If two machines each began it anew, both went
// on from the same configuration, but apart. Their lines tell them apart, and no machine may go over from one to
// the other, because equal numbers mean different configurations.
type Line []uint64

// Leads reports whether a machine whose store has other has not heard of this line: the instance was refounded since, or
// the two are apart.
func (l Line) Leads(other Line) bool { return len(l) > len(other) || l.IsApart(other) }

// IsApart reports whether neither of two lines goes on from the other.
func (l Line) IsApart(other Line) bool {
	n := min(len(l), len(other))
	return !slices.Equal(l[:n], other[:n])
}
