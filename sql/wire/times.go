package wire

import (
	"bytes"
	"slices"

	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
)

// mendTimes writes parameters that clients send as points in time, and not as text,
// as MySQL does. The protocol library leaves out the zeros that numbers begin with:
// 5 ms are .5000 then, and a day in a column of characters is 2024-1-2. Nothing
// but them comes as VARCHAR.
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
	width := 2
	if bytes.IndexByte(s, '-') > 0 { // not the sign of a time
		width = 4
	}
	out := make([]byte, 0, len("2006-01-02 15:04:05.000000"))
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		if n := end - i; n == 0 {
			if out, end = append(out, s[i]), i+1; s[i] == '.' {
				width = len(zeros)
			}
		} else {
			out, width = append(append(out, zeros[:max(width-n, 0)]...), s[i:end]...), 2
		}
		i = end
	}
	return out
}

// binaryTimes writes a result's points in time for the binary protocol: a date of zeros has
// no bytes at all, and not the zeros that the protocol library sends, which clients take for
// a day before the year 1; and a column of times with fractions of a second says so, for
// clients go by that.
func binaryTimes(r *sqltypes.Result) {
	isShared := true
	for at, f := range r.Fields {
		switch f.Type {
		case sqltypes.Date, sqltypes.Datetime, sqltypes.Timestamp:
			emptyZeros(r.Rows, at)
		case sqltypes.Time:
			if !hasFraction(r.Rows, at) {
				continue
			}
			if isShared { // with other results of the statement
				r.Fields, isShared = slices.Clone(r.Fields), false
			}
			r.Fields[at] = &querypb.Field{
				Name: f.Name, Type: f.Type, Table: f.Table, OrgTable: f.OrgTable, Database: f.Database, OrgName: f.OrgName,
				ColumnLength: f.ColumnLength, Charset: f.Charset, Decimals: 6, Flags: f.Flags,
			}
		}
	}
}

func emptyZeros(rows [][]sqltypes.Value, at int) {
	for _, row := range rows {
		if v := row[at]; !v.IsNull() && len(bytes.Trim(v.Raw(), "0-: .")) == 0 {
			row[at] = sqltypes.MakeTrusted(v.Type(), nil)
		}
	}
}

func hasFraction(rows [][]sqltypes.Value, at int) bool {
	for _, row := range rows {
		if bytes.IndexByte(row[at].Raw(), '.') >= 0 {
			return true
		}
	}
	return false
}
