package table

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	in := `goos: linux
cpu: Abacus
BenchmarkRead/64-2   100   30.0 ns/op   1.5 misses   0 B/op   0 allocs/op
BenchmarkRead/64-2   100   10.0 ns/op   0.5 misses   0 B/op   0 allocs/op
BenchmarkWrite       100   20 ns/op
PASS
`
	rows, err := Read(strings.NewReader(in))
	want := []*Row{
		{"Read/64", map[string][]float64{"ns/op": {30, 10}, "misses": {1.5, 0.5}, "B/op": {0, 0}, "allocs/op": {0, 0}}},
		{"Write", map[string][]float64{"ns/op": {20}}},
	}
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Read(strings.NewReader("PASS\n")); !errors.Is(err, ErrEmpty) {
		t.Errorf("error %v", err)
	}
	if _, err := Read(strings.NewReader("BenchmarkRead-2 100 fast ns/op\n")); err == nil || !strings.Contains(err.Error(), `bad number "fast"`) {
		t.Errorf("error %v", err)
	}
	if _, err := Read(iotest.ErrReader(iotest.ErrTimeout)); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v", err)
	}
}
