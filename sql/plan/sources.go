package plan

// SourcesMax bounds the sources of a query, which are its scans and joins. A statement remembers
// the chosen access of each scan, and the chosen order of each join.
const SourcesMax = 8

// numberSources numbers the sources of a plan from next on, and returns the number after them.
func numberSources(n Node, next int) int {
	switch n := n.(type) {
	case *Scan:
		n.Number = next
		return next + 1
	case *Join:
		n.Number = next
		next++
	}
	for _, child := range childrenOf(n) {
		next = numberSources(child, next)
	}
	return next
}
