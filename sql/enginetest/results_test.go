package enginetest

import (
	stderrors "errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gmstest "github.com/dolthub/go-mysql-server/enginetest"
	"github.com/dolthub/go-mysql-server/enginetest/queries"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"gopkg.in/src-d/go-errors.v1"
)

var _ gmstest.ResultEvaluationHarness = (*harness)(nil)

// EvaluateQueryResults implements gmstest.ResultEvaluationHarness. The suite
// expects doubles of SUM and AVG, where MySQL and farmsql give decimals: these
// have to be the decimals nearest to what it expects.
func (h *harness) EvaluateQueryResults(t *testing.T, expected []gms.Row, columns []*gms.Column, schema gms.Schema, actual []gms.Row, query string, wrap queries.WrapBehavior) {
	if showsDatabases.MatchString(query) { // ours leaves the system database out, so that all that it shows can be dumped
		expected = slices.DeleteFunc(slices.Clone(expected), func(r gms.Row) bool { return r[0] == "mysql" })
	}
	expected, actual = copyRows(expected), copyRows(actual)
	if showsIndexes.MatchString(query) {
		withOrder(expected)
	}
	if h.ownCollation {
		sameCollation(expected)
		sameCollation(actual)
	}
	for at := range schema {
		if hasDouble(expected, at) {
			exactDecimals(expected, actual, at)
		}
		textsOfTimes(expected, actual, at)
	}
	if len(columns) == len(schema) {
		columns = append([]*gms.Column(nil), columns...)
		for at, c := range schema {
			if types.IsDecimal(c.Type) && types.IsFloat(columns[at].Type) {
				exact := *columns[at]
				exact.Type = c.Type
				columns[at] = &exact
			}
		}
	}
	gmstest.CheckResults(nil, t, nil, expected, columns, schema, actual, query, nil)
}

// showsIndexes are statements whose rows say in which order an index is: MySQL does, and
// go-mysql-server does not.
var showsDatabases = regexp.MustCompile(`(?i)^\s*SHOW (DATABASES|SCHEMAS)`)

var showsIndexes = regexp.MustCompile(`(?i)^\s*SHOW (INDEX|INDEXES|KEYS) `)

func withOrder(rows []gms.Row) {
	const order = 5
	for _, r := range rows {
		if len(r) > order && r[order] == nil {
			r[order] = "A"
		}
	}
}

// sameCollation has rows say the default collation of MySQL 8 where they say that of the
// suite, of a table as of the server.
func sameCollation(rows []gms.Row) {
	for _, r := range rows {
		for i, v := range r {
			if s, ok := v.(string); ok {
				r[i] = strings.ReplaceAll(s, gms.Collation_utf8mb4_0900_bin.String(), gms.Collation_utf8mb4_0900_ai_ci.String())
			}
		}
	}
}

func copyRows(rows []gms.Row) []gms.Row {
	out := make([]gms.Row, len(rows))
	for i, r := range rows {
		out[i] = r.Copy()
	}
	return out
}

// textsOfTimes writes a time as its text where that is expected: TIMESTAMP of a parameter is a
// DATETIME, as in MySQL, and go-mysql-server's a text.
func textsOfTimes(expected, actual []gms.Row, at int) {
	for i := range min(len(expected), len(actual)) {
		if at >= len(expected[i]) || at >= len(actual[i]) {
			continue
		}
		if _, isText := expected[i][at].(string); isText {
			if t, isTime := actual[i][at].(time.Time); isTime {
				actual[i][at] = t.Format(time.DateTime)
			}
		}
	}
}

func hasDouble(rows []gms.Row, at int) bool {
	for _, r := range rows {
		if at < len(r) {
			if _, ok := r[at].(float64); ok {
				return true
			}
		}
	}
	return false
}

// exactDecimals writes the doubles that are expected of a column of decimals as those that
// they mean, with as many digits as the column has: they are compared as decimals then,
// digit by digit, and not as doubles.
func exactDecimals(expected, actual []gms.Row, at int) {
	digits := int32(-1)
	for _, r := range actual {
		if d, ok := r[at].(decimal.Decimal); ok {
			digits = max(digits, -d.Exponent())
		}
	}
	if digits < 0 {
		return
	}
	for _, r := range expected {
		if f, ok := r[at].(float64); ok {
			r[at] = decimal.NewFromFloat(f).StringFixed(digits)
		}
	}
}

// EvaluateExpectedError implements gmstest.ResultEvaluationHarness.
func (h *harness) EvaluateExpectedError(t *testing.T, expected string, err error) {
	require.Equal(t, expected, err.Error())
}

// windowErrors are MySQL's numbers for errors about windows, which are finer than kinds.
var windowErrors = map[*errors.Kind][]int{
	gms.ErrInvalidWindowInheritance:    {3581, 3582, 3583},
	gms.ErrCircularWindowInheritance:   {3580},
	aggregation.ErrRangeInvalidOrderBy: {3587},
}

// EvaluateExpectedErrorKind implements gmstest.ResultEvaluationHarness. An error that has its
// number by now, and the text of the kind, is of that kind.
func (h *harness) EvaluateExpectedErrorKind(t *testing.T, expected *errors.Kind, err error) {
	var numbered *mysql.SQLError
	if stderrors.As(err, &numbered) && regexp.MustCompile(strings.ReplaceAll("^"+regexp.QuoteMeta(expected.Message)+"$", "%s", ".*")).MatchString(numbered.Message) {
		return
	}
	hasNumber := func(number int) bool { return strings.Contains(err.Error(), fmt.Sprintf("(errno %d)", number)) }
	if slices.ContainsFunc(windowErrors[expected], hasNumber) { // of the parser, in another error
		return
	}
	require.True(t, expected.Is(err), "Expected error of type %s but got %s", expected, err)
}
