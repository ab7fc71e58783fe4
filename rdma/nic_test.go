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

func TestStepsPerMessage(t *testing.T) {
	for c, want := range map[Costs]int{
		{Read: 2, Wait: 8, Message: 20}:  2,
		{Read: 2, Message: 20}:           10,
		{Read: 2, Wait: 30, Message: 20}: 1,
		{}:                               1,
	} {
		if got := c.StepsPerMessage(); got != want {
			t.Errorf("%+v: %d, want %d", c, got, want)
		}
	}
}
