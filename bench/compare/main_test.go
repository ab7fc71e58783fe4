package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const notes = `began	2026-11-22T13:14:45Z
system	Abacus	1	of wood
missing	Quipu	no wool
work	sums	of two numbers
others	0.50
run	sums	Abacus	10	2.0
run	sums	farmsql	40
run	products	farmsql	5	1
run	sums	Abacus	30	6.0
run	sums	farmsql	60
system	Abacus	1	of wood
others	0.25
`

func TestTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "json")
	var out strings.Builder
	if err := run([]string{"--json", file}, strings.NewReader(notes), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"others kept up to 0.5 processors busy", "- Abacus 1: of wood\n- Quipu is missing: no wool\n", "- sums: of two numbers",
		"| sums | Abacus | 20 | 10, 30 | 1.00 | 4.00 |\n|  | farmsql | 50 | 40, 60 | 2.50 |  |\n| products | farmsql | 5 | 5 | 1.00 | 1.00 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c comparison
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if r := c.Rows[1]; len(c.Rows) != 3 || r.System != "farmsql" || r.Median != 50 || r.Ratio != 2.5 || c.Conditions.Others != 0.5 ||
		c.Conditions.Began.Format(time.RFC3339) != "2026-11-22T13:14:45Z" {
		t.Errorf("the file has %s", b)
	}
}

func TestResult(t *testing.T) {
	for result, want := range map[string]string{
		`{"conditions": {"api": "native"}, "total": {"perSecond": 7}, "processorMicroseconds": 0.5}`:                                "run\tw\ts\t7.0\t0.500\n",
		`{"conditions": {"api": "sql"}, "total": {"perSecond": 7}, "processorMicroseconds": 0.5}`:                                   "run\tw\ts\t7.0\n",
		`{"conditions": {"api": "sql"}, "total": {"perSecond": 7}, "processorMicroseconds": 0.5, "serverProcessorMicroseconds": 3}`: "run\tw\ts\t7.0\t3.000\n",
		`{"conditions": {"server": "3.1", "settings": "none"}, "total": {"perSecond": 7}, "processorMicroseconds": 2}`:              "system\ts\t3.1\tnone\nrun\tw\ts\t7.0\t2.000\n",
	} {
		file := filepath.Join(t.TempDir(), "result")
		if err := os.WriteFile(file, []byte(result), 0o666); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := run([]string{"--result", file, "w", "s"}, nil, &out); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", result, out.String(), err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		args     []string
		in, want string
	}{
		{nil, "", "nothing was measured"},
		{nil, "work\tsums\tof numbers\n", "nothing was measured"},
		{nil, "run\tsums\tAbacus\n", "means nothing"},
		{nil, "ran\tsums\tAbacus\t1\n", "means nothing"},
		{nil, "run\tsums\tAbacus\tfast\n", `bad number "fast"`},
		{nil, "run\tsums\tAbacus\t-1\n", `bad number "-1"`},
		{nil, "run\tsums\tAbacus\tNaN\n", `bad number "NaN"`},
		{nil, "others\tmany\n", `bad number "many"`},
		{nil, "began\tat noon\n", `cannot parse "at noon"`},
		{nil, "run\tsums\tAbacus\t1\n" + strings.Repeat("x", 1<<17), "token too long"},
		{[]string{"--json", folder}, "run\tsums\tAbacus\t1\n", "is a directory"},
		{[]string{"--tabel"}, "", "not defined"},
		{[]string{"--result", file("good", "{}"), "sums"}, "", "needs a work and a system"},
		{[]string{"--result", file("empty", "{}"), "sums", "Abacus"}, "", "no throughput"},
		{[]string{"--result", file("bad", "{"), "sums", "Abacus"}, "", "unexpected end"},
		{[]string{"--result", filepath.Join(folder, "none"), "sums", "Abacus"}, "", "no such file"},
	} {
		err := run(c.args, strings.NewReader(c.in), &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %.40q: %v, want %q", c.args, c.in, err, c.want)
		}
	}
}
