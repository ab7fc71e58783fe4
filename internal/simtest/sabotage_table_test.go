//go:build sabotage

package simtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The table of broken protocols in docs/testing.md is between these lines.
const (
	tableFile  = "../../docs/testing.md"
	tableBegin = "<!-- broken protocols: made by TestSabotage -table -->\n"
	tableEnd   = "<!-- end of broken protocols -->\n"
)

// by describes what has caught a protocol.
func (c caught) by() string {
	switch {
	case c.test != "":
		return fmt.Sprintf("`%s`: %s", c.pkg, c.test)
	case c.options == "":
		return "the simulator"
	}
	return "the simulator: " + c.options
}

// row is the protocol's line of the table.
func (c caught) row() string {
	seeds := "-"
	if c.test == "" {
		seeds = fmt.Sprint(c.seed)
	}
	return fmt.Sprintf("| %v | %s | %s | %s | %.1f |\n", c.step, c.step.Text(), c.by(), seeds, c.took.Seconds())
}

// replaceTable writes the table. Rows of protocols that were not tried or not caught stay as they
// were.
func replaceTable(t *testing.T, rows []caught) {
	text, before, after := splitTable(t)
	lines := tableLines(text[before:after])
	for _, r := range rows {
		lines[r.step.String()] = r.row()
	}
	var b strings.Builder
	b.WriteString("| step | what is done without it | caught by | seeds | seconds |\n|---|---|---|---|---|\n")
	for _, c := range catches {
		b.WriteString(lines[c.step.String()])
	}
	if err := os.WriteFile(tableFile, []byte(text[:before]+b.String()+text[after:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tableLines returns the lines of a table, by step.
func tableLines(table string) map[string]string {
	lines := make(map[string]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 5 {
			lines[strings.TrimPrefix(cells[0], "| ")] = line
		}
	}
	return lines
}

// splitTable reads the document and finds the table in it.
func splitTable(t *testing.T) (text string, from, to int) {
	b, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	text = string(b)
	from, to = strings.Index(text, tableBegin), strings.Index(text, tableEnd)
	if from < 0 || to < from {
		t.Fatalf("%s has no place for the table", tableFile)
	}
	return text, from + len(tableBegin), to
}

// tableSeconds returns how long it took to catch each protocol when the table was made.
func tableSeconds(t *testing.T) map[string]time.Duration {
	text, from, to := splitTable(t)
	took := make(map[string]time.Duration)
	for step, line := range tableLines(text[from:to]) {
		var seconds float64
		if _, err := fmt.Sscanf(line[strings.LastIndex(line, " | "):], " | %f", &seconds); err == nil {
			took[step] = time.Duration(seconds * float64(time.Second))
		}
	}
	return took
}
