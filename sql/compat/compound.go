package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's parser does not know intervals of several units, such as INTERVAL '1 2'
// DAY_HOUR. Its interval expression accepts such an interval only if it has no sign and states all
// parts.

// A compound is a unit with several parts, such as DAY_HOUR.
type compound struct {
	parts []int64 // for each part, the number of least units that it has
	least string  // the unit of the last part
}

// fractionParts are a day, an hour, a minute, a second and a microsecond, in microseconds.
var fractionParts = []int64{24 * 3600e6, 3600e6, 60e6, 1e6, 1}

// compounds maps names to the units with several parts.
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

// partsName is the name of the function that converts an interval to a number of the unit's last part.
const partsName = "farmsql.parts"

func init() {
	registerScalars(&scalar{partsName, 2, 2, always(types.Int64), func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
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

// of converts a text to a number of least units. The text has numbers with anything between them;
// if there are too few, the first parts are missing. It returns false if there are too many.
func (c compound) of(text string) (n int64, ok bool) {
	sign := int64(1)
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "-") {
		sign = -1
	}
	var values []int64
	s := scanner{text}
	for {
		s.rest = strings.TrimLeftFunc(s.rest, func(r rune) bool { return r < '0' || r > '9' })
		before := len(s.rest)
		v, found := s.number()
		if !found {
			break
		}
		values = append(values, v)
		if s.rest == "" && c.least == "MICROSECOND" {
			for digits := before - len(s.rest); digits < 6; digits++ { // the fraction stands for six digits
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

// splitInterval turns an interval with several parts into one in the unit of the last part.
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

// compoundUnits quotes units with several parts, which the parser accepts only as quoted names.
func compoundUnits(s *Tokens) (edits []Edit) {
	inInterval := false
	for s.Next(); !s.IsOver(); {
		inInterval = inInterval || s.Token == sqlparser.INTERVAL
		before := s.Token
		s.Next()
		unit := strings.ToLower(string(s.value))
		_, isCompound := compounds[unit]
		isUnit := isCompound && s.Token != sqlparser.STRING && s.Token != sqlparser.ID && before != '(' // not a text, a quoted name, or the unit in EXTRACT(DAY_HOUR FROM ...)
		if isUnit && inInterval {
			edits, inInterval = append(edits, Edit{s.before, s.end, " `" + unit + "`"}), false
		}
	}
	return edits
}
