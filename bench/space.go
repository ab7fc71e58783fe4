package bench

// A Space is how much memory a workload's data take, and how much of that they are
// (space utilization, NSDI'14 figure 11).
type Space struct {
	// PairBytes is the size of all keys and values.
	PairBytes int64 `json:"pairBytes"`
	// MemoryBytes is the size of all objects of the table in one replica, each with its
	// header, line versions and unused bytes.
	MemoryBytes int64 `json:"memoryBytes"`
	// UsedPart is what part of the memory the pairs are.
	UsedPart float64 `json:"usedPart"`
}

// NewSpace returns what part of memory pairs are, of which there is some.
func NewSpace(pairBytes, memoryBytes int64) *Space {
	return &Space{pairBytes, memoryBytes, float64(pairBytes) / float64(memoryBytes)}
}

// A Spacious workload knows how much memory its data take.
type Spacious interface {
	Workload
	// Space returns what the last Check has found, or nil if that cannot be told.
	Space() *Space
}

// spaceOf returns what a workload knows after its check.
func spaceOf(w Workload) *Space {
	if s, ok := w.(Spacious); ok {
		return s.Space()
	}
	return nil
}
