package hash

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// A loop over a cursor visits each pair once, even if the loop is left and another one continues.
func TestCursorAll(t *testing.T) {
	tb := newTable(t, Config{})
	const pairs = 300
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		for i := range pairs {
			if err := tb.Put(tx, fmt.Appendf(nil, "key %d", i), fmt.Appendf(nil, "value %d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	tx := tb.m.Begin()
	defer tx.Abort()
	cursor, met := tb.Scan(tx), make(map[string]string)
	for _, limit := range []int{10, 2 * pairs} {
		for key, value := range cursor.All() {
			if met[string(key)] != "" {
				t.Errorf("%s again", key)
			}
			met[string(key)] = string(value)
			if len(met) >= limit {
				break
			}
		}
	}
	for i := range pairs {
		if met[fmt.Sprintf("key %d", i)] != fmt.Sprintf("value %d", i) {
			t.Errorf("key %d: %q", i, met[fmt.Sprintf("key %d", i)])
		}
	}
	if len(met) != pairs || cursor.Err() != nil {
		t.Errorf("%d pairs, %v", len(met), cursor.Err())
	}
}
