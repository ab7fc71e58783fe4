package shapes

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// measured returns a row of rounds in which the servers take so long, in microseconds.
func measured(shape string, m Mode, farmsql, other []float64) *Row {
	r := &Row{Group: "lookup", Shape: shape, Mode: m}
	for i, rounds := range [][]float64{farmsql, other} {
		for _, us := range rounds {
			d := time.Duration(us * 1e3)
			r.Figures[i].add(&turn{executions: 2, took: 4 * d, processor: 2 * d, latencies: []time.Duration{2 * d, 2 * d}})
		}
	}
	r.summarize()
	return r
}

func result() *Result {
	wrong, failed := measured("wrong", Text, nil, nil), measured("failed", Text, nil, nil)
	wrong.Difference, failed.Figures[0].Error = "1 and 2", "no | table"
	res := &Result{Servers: [2]string{"farmsql", "MariaDB"}, Modes: Modes(), Rounds: 3, Rows: []Row{
		*measured("ahead", Text, []float64{10, 20, 30}, []float64{40, 40, 45}), *measured("even", Text, []float64{10}, []float64{10}),
		*measured("behind", Text, []float64{100}, []float64{12.5}), *measured("far behind", Prepared, []float64{1000}, []float64{10}), *wrong, *failed,
	}}
	res.summarize()
	return res
}

func TestSummaries(t *testing.T) {
	res := result()
	r := res.Rows[0]
	if r.Ratio != 2 || r.Lowest != 1.5 || r.Highest != 4 || r.Latency != 2 || r.Figures[0].Processor != 20 || r.Figures[0].Latency != 40 || r.Figures[0].Executions != 6 {
		t.Errorf("%+v", r)
	}
	want := Summary{Mode: Text, Measured: 3, Wrong: 1, Failed: 1, AtPar: 2, Under08: 1, Under05: 1}
	got := res.Summaries[0]
	if math.Abs(got.Mean-math.Cbrt(2*1*0.125)) > 1e-9 || math.Abs(got.Latency-got.Mean) > 1e-9 {
		t.Errorf("means %g and %g", got.Mean, got.Latency)
	}
	if got.Mean, got.Latency = 0, 0; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := res.Summaries[1]; got.Measured != 1 || got.Under005 != 1 || got.Under05 != 1 || got.Under08 != 1 || got.AtPar != 0 {
		t.Errorf("%+v", got)
	}
	if m := geometricMean(nil); m != 0 {
		t.Errorf("the mean of nothing is %g", m)
	}
	if m := median([]int{4, 1, 3, 2}); m != 2 {
		t.Errorf("the median is %d", m)
	}
}

func TestPrint(t *testing.T) {
	res := result()
	res.Conditions.Scale, res.Conditions.Durability = bench.Scale{N: 5000, Unit: "rows"}, bench.Tmpfs
	var out, markdown, text bytes.Buffer
	if err := errors.Join(res.Print(&out), res.WriteMarkdown(&markdown), res.WriteJSON(&text)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lookup\n", "ahead", "2.00", "1.50 to 4.00", "WRONG, 1 and 2", "farmsql fails: no | table", "data: 5000 rows; durability: tmpfs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for _, want := range []string{"\n## lookup\n", "| ahead | text | 40 | 20 | 2.00 | 1.50 to 4.00 | 80 | 40 | 2.00 |\n", `| failed | text | farmsql fails: no \| table | | | | | | |` + "\n"} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("no %q in\n%s", want, &markdown)
		}
	}
	var again Result
	if err := json.Unmarshal(text.Bytes(), &again); err != nil || len(again.Rows) != len(res.Rows) || again.Rows[0].Ratio != 2 || again.Rows[4].Difference == "" {
		t.Errorf("%v: %s", err, &text)
	}
	for ratio, want := range map[float64]string{0: "-", 0.000345: "0.00034", 0.00123: "0.0012", 0.0456: "0.046", 0.9949: "0.995", 12.345: "12.35"} {
		if got := Ratio(ratio); got != want {
			t.Errorf("%g is %s, want %s", ratio, got, want)
		}
	}
}

func TestWrong(t *testing.T) {
	res := result()
	res.Tables = []string{"orders"}
	err := res.Wrong()
	if !errors.Is(err, ErrDiffers) {
		t.Fatal(err)
	}
	for _, want := range []string{"fails: 3:\n", "\nlookup: wrong (text): WRONG, 1 and 2", "\nlookup: failed (text): farmsql fails: no | table", "\ntable orders has other rows"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	res.Tables, res.Rows = nil, res.Rows[:4]
	if err := res.Wrong(); err != nil {
		t.Error(err)
	}
}
