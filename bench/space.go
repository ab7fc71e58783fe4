package bench

// A Space compares the size of a workload's data with the memory that they take (space
// utilization, NSDI'14 figure 11).
type Space struct {
	// PairBytes is the size of all keys and values.
	PairBytes int64 `json:"pairBytes"`
	// MemoryBytes is the size of all objects of the table in one replica, each with its
	// header, line versions and unused bytes.
	MemoryBytes int64 `json:"memoryBytes"`
	// UsedPart is PairBytes as a part of MemoryBytes.
	UsedPart float64 `json:"usedPart"`
}

// NewSpace returns the Space of pairs in memory; memoryBytes is not 0.
func NewSpace(pairBytes, memoryBytes int64) *Space {
	return &Space{pairBytes, memoryBytes, float64(pairBytes) / float64(memoryBytes)}
}

// A Spacious workload knows how much memory its data take.
type Spacious interface {
	Workload
	// Space returns the result of the last Check; nil if there is none.
	Space() *Space
}

// spaceOf returns a workload's space after its check.
func spaceOf(w Workload) *Space {
	if s, ok := w.(Spacious); ok {
		return s.Space()
	}
	return nil
}
