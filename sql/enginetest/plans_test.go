package enginetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	gmstest "github.com/dolthub/go-mysql-server/enginetest"
	"github.com/dolthub/go-mysql-server/enginetest/queries"
	"github.com/dolthub/go-mysql-server/enginetest/scriptgen/setup"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/shopspring/decimal"
)

// planRows runs the queries of a test of the suite that compares the text of plans, which
// has go-mysql-server's costs of its own tables in it. Their rows have to be those that it
// finds in these tables.
func planRows(tests []queries.QueryPlanTest, scripts [][]setup.SetupScript) func(*testing.T, *harness) {
	return func(t *testing.T, h *harness) {
		h.Setup(scripts...)
		theirs := gmstest.NewDefaultMemoryHarness()
		theirs.Setup(scripts...)
		e, err := h.NewEngine(t)
		if err != nil {
			t.Fatal(err)
		}
		other, err := theirs.NewEngine(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			t.Run(tt.Query, func(t *testing.T) {
				if h.SkipQueryTest(tt.Query) {
					t.Skip()
				}
				want, failed := sortedRows(other, theirs.NewContext(), tt.Query)
				got, err := sortedRows(e, h.NewContext(), tt.Query)
				if (err == nil) != (failed == nil) || !slices.Equal(got, want) {
					t.Errorf("%s\n%d rows, %v:\n%s\nwant %d, %v:\n%s", tt.Query, len(got), err, shown(got), len(want), failed, shown(want))
				}
			})
		}
	}
}

func shown(rows []string) string { return strings.Join(rows[:min(len(rows), 20)], "\n") }

func sortedRows(e gmstest.QueryEngine, ctx *gms.Context, query string) ([]string, error) {
	_, iter, _, err := e.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := gms.RowIterToRows(ctx, iter)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, r := range rows {
		var b strings.Builder
		for _, v := range r {
			b.WriteString(readable(v) + " | ")
		}
		all = append(all, b.String())
	}
	slices.Sort(all)
	return all, nil
}

// readable is a value without its type: sums are decimals here, and doubles there.
func readable(v any) string {
	const digits = 12
	switch v := v.(type) {
	case decimal.Decimal:
		return readable(v.InexactFloat64())
	case float64:
		return strconv.FormatFloat(v, 'g', digits, 64)
	case float32:
		return readable(float64(v))
	}
	return fmt.Sprint(v)
}
