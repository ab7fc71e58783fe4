package history

import "testing"

// The digest depends on everything in a history.
func TestDigest(t *testing.T) {
	history := func(change func(txs []Transaction)) uint64 {
		txs := []Transaction{
			{Label: "a", Start: 1, End: 2, Outcome: Committed, Ops: []Op{{Write: true, Object: 1, Value: 2, Version: 3}}},
			{Label: "b", Start: 3, End: 4, Outcome: Aborted, Ops: []Op{{Object: 1, Value: 2}}},
		}
		change(txs)
		return Digest(txs)
	}
	same := history(func([]Transaction) {})
	if again := history(func([]Transaction) {}); again != same {
		t.Errorf("the same history has the digests %x and %x", same, again)
	}
	for what, change := range map[string]func(txs []Transaction){
		"label":   func(txs []Transaction) { txs[0].Label = "c" },
		"start":   func(txs []Transaction) { txs[0].Start = 0 },
		"end":     func(txs []Transaction) { txs[1].End = 5 },
		"outcome": func(txs []Transaction) { txs[1].Outcome = Unknown },
		"shown":   func(txs []Transaction) { txs[1].Shown = true },
		"write":   func(txs []Transaction) { txs[1].Ops[0].Write = true },
		"object":  func(txs []Transaction) { txs[1].Ops[0].Object = 2 },
		"value":   func(txs []Transaction) { txs[1].Ops[0].Value = 1 },
		"version": func(txs []Transaction) { txs[0].Ops[0].Version = 2 },
		"absent":  func(txs []Transaction) { txs[1].Ops[0].Absent = true },
		"order":   func(txs []Transaction) { txs[0], txs[1] = txs[1], txs[0] },
		"ops":     func(txs []Transaction) { txs[0].Ops = nil },
	} {
		if history(change) == same {
			t.Errorf("another %s has the same digest", what)
		}
	}
}
