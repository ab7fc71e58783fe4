package wire

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
)

// fieldOf describes a column as the engine's handler does.
func fieldOf(ctx *gms.Context, c *gms.Column, results gms.CharacterSetID) *querypb.Field {
	f := &querypb.Field{
		Name: c.Name, OrgName: c.Name, Table: c.Source, OrgTable: c.Source, Database: c.DatabaseSource,
		Type: c.Type.Type(), Charset: uint32(gms.Collation_Default.CharacterSet()), ColumnLength: c.Type.MaxTextResponseByteLength(ctx),
	}
	if t, ok := c.Type.(gms.TypeWithCollation); ok {
		f.Charset = uint32(t.Collation().CharacterSet())
	}
	switch {
	case types.IsBinaryType(c.Type):
		f.Charset = uint32(gms.Collation_binary)
	case results != gms.CharacterSet_Unspecified:
		f.Charset = uint32(results)
	}
	for _, flag := range []struct {
		on   bool
		flag querypb.MySqlFlag
	}{
		{!c.Nullable, querypb.MySqlFlag_NOT_NULL_FLAG}, {c.AutoIncrement, querypb.MySqlFlag_AUTO_INCREMENT_FLAG},
		{c.PrimaryKey, querypb.MySqlFlag_PRI_KEY_FLAG}, {types.IsUnsigned(c.Type), querypb.MySqlFlag_UNSIGNED_FLAG},
	} {
		if flag.on {
			f.Flags |= uint32(flag.flag)
		}
	}
	if types.IsDecimal(c.Type) {
		f.Decimals = uint32(c.Type.(gms.DecimalType).Scale())
	}
	describeField(f)
	describeType(f, c.Type)
	return f
}

// describe fills in metadata of columns that the engine's handler leaves out and clients need.
// columns, if not nil, returns those of the statement, which fields may not be of: a procedure
// answers with what a statement of its body has found.
func describe(fields []*querypb.Field, columns func() gms.Schema) {
	var of gms.Schema
	if columns != nil {
		of = columns()
	}
	for i, f := range fields {
		describeField(f)
		if len(of) == len(fields) && of[i].Name == f.Name && of[i].Type.Type() == f.Type {
			describeType(f, of[i].Type)
		}
	}
}

// describeField says what follows from the kind of a column.
func describeField(f *querypb.Field) {
	// The protocol library leaves its own out where there are others.
	_, flags := sqltypes.TypeToMySQL(f.Type)
	f.Flags |= uint32(flags)
	switch t := f.Type; {
	case t == sqltypes.Float32 || t == sqltypes.Float64: // C's client rounds to so many digits
		f.Decimals = decimalsOfDouble
		isNoText(f)
	case t == sqltypes.Year:
		f.Flags |= uint32(querypb.MySqlFlag_ZEROFILL_FLAG)
		isNoText(f)
	case t == sqltypes.Bit: // bytes, and no text, to mariadb-dump --hex-blob
		f.Charset = uint32(gms.Collation_binary)
	case t == sqltypes.Geometry || t == sqltypes.TypeJSON:
		f.Flags |= uint32(querypb.MySqlFlag_BLOB_FLAG)
		isNoText(f)
	case t == sqltypes.Text || t == sqltypes.Blob:
		f.Flags |= uint32(querypb.MySqlFlag_BLOB_FLAG)
	case sqltypes.IsIntegral(t) || t == sqltypes.Decimal || t == sqltypes.Date || t == sqltypes.Datetime || t == sqltypes.Timestamp || t == sqltypes.Time:
		isNoText(f)
	}
}

// isNoText says that a column has no character set.
func isNoText(f *querypb.Field) {
	f.Charset = uint32(gms.Collation_binary)
	f.Flags |= uint32(querypb.MySqlFlag_BINARY_FLAG)
}

// describeType says what only the type of a column tells.
func describeType(f *querypb.Field, t gms.Type) {
	switch t := t.(type) {
	case gms.DatetimeType:
		f.Decimals = uint32(t.Precision())
	case gms.NumberType:
		if f.Type == sqltypes.Int8 && t.DisplayWidth() == 1 { // BOOLEAN, to some clients
			f.ColumnLength = 1
		}
	}
}

// decimalsOfDouble says that a column has as many digits behind its point as there are.
const decimalsOfDouble = 31
