package report

import (
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/bench"
)

// originHeader are the columns that say where a row's figures come from.
var originHeader = []string{"lowest to highest", "runs", "data", "memory"}

// origin returns the columns of originHeader for an experiment whose figure is f.
func (p *page) origin(e experiment, f figure) []string {
	runs := p.runs[e.name]
	if len(runs) == 0 {
		return make([]string, len(originHeader))
	}
	n := 0
	for _, run := range runs {
		n += max(1, run.results[0].Spread.Runs)
	}
	return originOf(f, n, &runs[0].conditions[0])
}

// originOf returns the columns of originHeader for a figure.
func originOf(f figure, runs int, c *bench.Conditions) []string {
	return []string{f.spread(), fmt.Sprint(runs), dataOf(c), memoryOf(c)}
}

// dataOf returns the size of the data, such as "1 warehouse" or "1,000,000 subscribers".
func dataOf(c *bench.Conditions) string {
	if c.Scale.N == 0 {
		return ""
	}
	n := fmt.Sprint(c.Scale.N)
	if c.Scale.N >= 100 {
		n = number(float64(c.Scale.N))
	}
	return n + " " + c.Scale.Unit
}

// memoryOf returns the kind and the durability of the memory that the data were in. Earlier results
// have only the place of the memory.
func memoryOf(c *bench.Conditions) string {
	switch {
	case c.Durability != "":
		return string(c.Durability)
	case c.Memory == "anonymous memory":
		return string(bench.Volatile)
	case strings.HasPrefix(c.Memory, "files in /dev/shm"):
		return string(bench.Tmpfs)
	}
	return ""
}

// originText returns the columns of originHeader as a sentence, for a table whose rows all have the
// same origin.
func originText(runs int, c *bench.Conditions) string {
	parts := []string{fmt.Sprintf("%d runs", runs)}
	if runs == 1 {
		parts[0] = "1 run"
	}
	for _, s := range []string{dataOf(c), memoryOf(c)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}
