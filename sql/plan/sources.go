package plan

// SourcesMax bounds the sources of a query: its scans and joins, of each of which it is remembered by
// which access, or in which order, it is read.
const SourcesMax = 8

// numberSources numbers the sources of a plan from next on, and returns the number after them.
func numberSources(n Node, next int) int {
	switch n := n.(type) {
	case *Scan:
		n.Number = next
		return next + 1
	case *Join:
		n.Number = next
		return next + 1
	case *Union:
		return numberSources(n.Second, numberSources(n.First, next))
	case *Derived:
		return numberSources(n.Child, next)
	case *Exists:
		return numberSources(n.Child, next)
	case *Limit:
		return numberSources(n.Child, next)
	case *Distinct:
		return numberSources(n.Child, next)
	case *Sort:
		return numberSources(n.Child, next)
	case *Filter:
		return numberSources(n.Child, next)
	case *Project:
		return numberSources(n.Child, next)
	case *Group:
		return numberSources(n.Child, next)
	}
	return next
}
