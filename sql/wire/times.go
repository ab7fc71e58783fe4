package wire

import (
	"bytes"
	"slices"

	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
)

// mendTimes pads with zeros the numbers in dates and times that clients send in binary. The
// protocol library converts these to text without leading zeros: 5 ms become .5000, and a day in a
// text column 2024-1-2. Only these parameters have the type VARCHAR.
func mendTimes(vars map[string]*querypb.BindVariable) {
	for _, v := range vars {
		if v.Type == sqltypes.VarChar {
			v.Value = timeText(v.Value)
		}
	}
}

// timeText fills up the numbers of a date, a time or both with zeros.
func timeText(s []byte) []byte {
	const zeros = "000000"
	width := 2                       // digits of the next number
	if bytes.IndexByte(s, '-') > 0 { // the dash is not a time's sign
		width = 4
	}
	out := make([]byte, 0, len("2006-01-02 15:04:05.000000"))
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		if n := end - i; n == 0 { // a separator
			out, end = append(out, s[i]), i+1
			if s[i] == '.' {
				width = len(zeros)
			}
		} else {
			out, width = append(append(out, zeros[:max(width-n, 0)]...), s[i:end]...), 2
		}
		i = end
	}
	return out
}

// binaryTimes changes dates and times of a result to the form of the binary protocol. A date of
// zeros has no bytes; the protocol library would send zeros, which clients read as a day before
// the year 1. binaryTimes also sets the number of digits of a function's TIMEs with fractions, which
// clients rely on.
func binaryTimes(r *sqltypes.Result) {
	isShared := true
	for at, f := range r.Fields {
		switch f.Type {
		case sqltypes.Date, sqltypes.Datetime, sqltypes.Timestamp:
			emptyZeros(r.Rows, at)
		case sqltypes.Time:
			if f.Decimals > 0 || !hasFraction(r.Rows, at) {
				continue
			}
			if isShared { // other results of the statement share the fields
				r.Fields, isShared = slices.Clone(r.Fields), false
			}
			r.Fields[at] = &querypb.Field{
				Name: f.Name, Type: f.Type, Table: f.Table, OrgTable: f.OrgTable, Database: f.Database, OrgName: f.OrgName,
				ColumnLength: f.ColumnLength, Charset: f.Charset, Decimals: 6, Flags: f.Flags,
			}
		}
	}
}

// emptyZeros makes the zero dates and times of a column empty, such as 0000-00-00.
func emptyZeros(rows [][]sqltypes.Value, at int) {
	for _, row := range rows {
		if v := row[at]; !v.IsNull() && len(bytes.Trim(v.Raw(), "0-: .")) == 0 {
			row[at] = sqltypes.MakeTrusted(v.Type(), nil)
		}
	}
}

// hasFraction reports whether a value of a column has a fraction of a second.
func hasFraction(rows [][]sqltypes.Value, at int) bool {
	for _, row := range rows {
		if bytes.IndexByte(row[at].Raw(), '.') >= 0 {
			return true
		}
	}
	return false
}
