package txn

import (
	"testing"
)

// Questions about parts are not moved or given out twice, however many there are, and
// keep nothing alive once they have been taken back.
func TestPartQuestions(t *testing.T) {
	var q partQuestions
	const n = 3 * partsChunkMax
	for range 2 {
		seen := make(map[*partQuestion]int)
		for i := range n {
			p := q.next()
			if _, again := seen[p]; again || p.was != nil {
				t.Fatalf("question %d was given out, or has kept what it asked", i)
			}
			seen[p], p.was = i, []byte{byte(i), byte(i >> 8)}
		}
		for p, i := range seen {
			if p.was[0] != byte(i) || p.was[1] != byte(i>>8) {
				t.Fatalf("question %d has become another", i)
			}
		}
		q.reset()
		if cap(q.chunk) > partsChunkMax {
			t.Fatalf("keeps %d questions", cap(q.chunk))
		}
	}
}
