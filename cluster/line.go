package cluster

import "slices"

// A Line is a list of random numbers, the oldest first: one for each time that the configuration store of an instance was
// lost and one machine began it anew with its copy. If two machines each began it anew, both went
// on from the same configuration, but apart. Their lines tell them apart, and no machine may go over from one to
// the other, because equal numbers mean different configurations.
type Line []uint64

// Leads reports whether a machine whose store has the line other has not heard of l: the instance was refounded since,
// or the two lines are apart.
func (l Line) Leads(other Line) bool { return len(l) > len(other) || l.IsApart(other) }

// IsApart reports whether neither of two lines goes on from the other.
func (l Line) IsApart(other Line) bool {
	n := min(len(l), len(other))
	return !slices.Equal(l[:n], other[:n])
}
