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

// by says what has caught a protocol.
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

// replaceTable writes the table.
func replaceTable(t *testing.T, rows []caught) {
	if len(rows) < len(catches) {
		t.Fatalf("%d of %d protocols: the table is of all", len(rows), len(catches))
	}
	text, before, after := splitTable(t)
	var b strings.Builder
	b.WriteString("| step | what is done without it | caught by | seeds | seconds |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(r.row())
	}
	if err := os.WriteFile(tableFile, []byte(text[:before]+b.String()+text[after:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// splitTable reads the document and says where the table is in it.
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

// tableRows returns how long it took to catch each protocol when the table was made.
func tableRows(t *testing.T) map[string]time.Duration {
	text, from, to := splitTable(t)
	rows := make(map[string]time.Duration)
	for line := range strings.Lines(text[from:to]) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		var seconds float64
		if len(cells) != 5 {
			continue
		}
		if _, err := fmt.Sscanf(cells[4], "%f", &seconds); err == nil {
			rows[strings.TrimPrefix(cells[0], "| ")] = time.Duration(seconds * float64(time.Second))
		}
	}
	return rows
}
