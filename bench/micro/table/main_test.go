package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	in := `goos: linux
cpu: Abacus
BenchmarkRead/64-2   100   30.0 ns/op   1.5 misses   0 B/op   0 allocs/op
BenchmarkRead/64-2   100   10.0 ns/op   0.5 misses   0 B/op   0 allocs/op
BenchmarkRead/64-2   100   20.0 ns/op   1.0 misses   0 B/op   0 allocs/op
PASS
`
	var out strings.Builder
	if err := run(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Machine: linux, Abacus.", "| Read/64 | 20 | 1.0 | 0 | 3 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestErrors(t *testing.T) {
	for in, want := range map[string]string{
		"PASS\n":                           "no benchmark in the input",
		"BenchmarkRead-2 100 fast ns/op\n": `bad number "fast"`,
	} {
		if err := run(strings.NewReader(in), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
}
