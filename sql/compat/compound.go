package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's parser does not know intervals of several units, INTERVAL '1 2' DAY_HOUR, and its
// expression takes those without a sign and with all parts only.

// A compound is a unit of several parts.
type compound struct {
	parts []int64 // how many of the unit least each part is
	least string  // the unit of the last part
}

// fractionParts are the parts of a day in microseconds.
var fractionParts = []int64{24 * 3600e6, 3600e6, 60e6, 1e6, 1}

// compounds are the units of several parts by name.
var compounds = map[string]compound{
	"day_hour":           {[]int64{24, 1}, "HOUR"},
	"day_minute":         {[]int64{24 * 60, 60, 1}, "MINUTE"},
	"day_second":         {[]int64{24 * 3600, 3600, 60, 1}, "SECOND"},
	"day_microsecond":    {fractionParts, "MICROSECOND"},
	"hour_minute":        {[]int64{60, 1}, "MINUTE"},
	"hour_second":        {[]int64{3600, 60, 1}, "SECOND"},
	"hour_microsecond":   {fractionParts[1:], "MICROSECOND"},
	"minute_second":      {[]int64{60, 1}, "SECOND"},
	"minute_microsecond": {fractionParts[2:], "MICROSECOND"},
	"second_microsecond": {fractionParts[3:], "MICROSECOND"},
	"year_month":         {[]int64{12, 1}, "MONTH"},
}

// partsName is the name of the function that returns how many of its last part an interval is.
const partsName = "farmsql.parts"

func init() {
	asScalar(&scalar{partsName, 2, 2, always(types.Int64), func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
		text, _, err := types.LongText.Convert(ctx, v[0])
		if err != nil {
			return nil, err
		}
		unit, _ := row.Text(v[1])
		if n, ok := compounds[unit].of(text.(string)); ok {
			return n, nil
		}
		return nil, nil
	}})
}

// of returns how many of the least unit a text is: numbers with anything between them. Missing ones are the
// first. False if there are too many.
func (c compound) of(text string) (n int64, ok bool) {
	sign := int64(1)
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "-") {
		sign = -1
	}
	var values []int64
	s := scanner{text}
	for {
		s.rest = strings.TrimLeftFunc(s.rest, func(r rune) bool { return r < '0' || r > '9' })
		length := len(s.rest)
		v, found := s.number()
		if !found {
			break
		}
		values = append(values, v)
		if length -= len(s.rest); s.rest == "" && c.least == "MICROSECOND" {
			for ; length < 6; length++ { // the digits of a fraction
				values[len(values)-1] *= 10
			}
		}
	}
	if len(values) > len(c.parts) {
		return 0, false
	}
	for i, v := range values {
		n += v * c.parts[len(c.parts)-len(values)+i]
	}
	return sign * n, true
}

// splitInterval has an interval of several parts be one of the last part.
func splitInterval(i *sqlparser.IntervalExpr) {
	unit := strings.ToLower(i.Unit)
	c, ok := compounds[unit]
	if !ok {
		return
	}
	i.Unit = c.least
	i.Expr = &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(partsName), Exprs: sqlparser.SelectExprs{
		&sqlparser.AliasedExpr{Expr: i.Expr}, &sqlparser.AliasedExpr{Expr: sqlparser.NewStrVal([]byte(unit))},
	}}
}

// compoundUnits quotes units of several parts, which the parser takes as names only.
func compoundUnits(s *Tokens) (edits []Edit) {
	inInterval := false
	for s.Next(); !s.IsOver(); {
		inInterval = inInterval || s.Token == sqlparser.INTERVAL
		before := s.Token
		s.Next()
		unit := strings.ToLower(string(s.value))
		_, ok := compounds[unit]
		isUnit := ok && s.Token != sqlparser.STRING && s.Token != sqlparser.ID && before != '(' // EXTRACT(DAY_HOUR FROM ...)
		if isUnit && inInterval {
			edits, inInterval = append(edits, Edit{s.before, s.end, " `" + unit + "`"}), false
		}
	}
	return edits
}
