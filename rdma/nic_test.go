package rdma

import (
	"testing"
	"time"
)

func TestReadsPerMessage(t *testing.T) {
	for c, want := range map[Costs]int{
		{Read: time.Microsecond, Message: 4 * time.Microsecond}: 4,
		{Read: 2, Message: 7}: 3,
		{Read: 7, Message: 2}: 1,
		{Message: 5}:          5,
		{}:                    1,
	} {
		if got := c.ReadsPerMessage(); got != want {
			t.Errorf("%+v: %d READs, want %d", c, got, want)
		}
	}
}
