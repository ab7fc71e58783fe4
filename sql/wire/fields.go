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

// describe completes the metadata of columns with what clients need and the engine's handler
// leaves out. columns, if not nil, returns the columns of the result: for a procedure, those
// of a statement in its body, which fields may not describe.
func describe(fields []*querypb.Field, columns func() gms.Schema) {
	var described gms.Schema
	if columns != nil {
		described = columns()
	}
	for i, f := range fields {
		describeField(f)
		if len(described) == len(fields) && described[i].Name == f.Name && described[i].Type.Type() == f.Type {
			describeType(f, described[i].Type)
		}
	}
}

// describeField sets the metadata that follow from the protocol type of a column.
func describeField(f *querypb.Field) {
	// The protocol library sets flags only where there are none.
	_, flags := sqltypes.TypeToMySQL(f.Type)
	f.Flags |= uint32(flags)
	switch t := f.Type; {
	case t == sqltypes.Float32 || t == sqltypes.Float64: // the C client rounds to this many digits
		f.Decimals = decimalsOfDouble
		markBinary(f)
	case t == sqltypes.Year:
		f.Flags |= uint32(querypb.MySqlFlag_ZEROFILL_FLAG)
		markBinary(f)
	case t == sqltypes.Bit: // mariadb-dump --hex-blob expects bytes, not text
		f.Charset = uint32(gms.Collation_binary)
	case t == sqltypes.Geometry || t == sqltypes.TypeJSON:
		f.Flags |= uint32(querypb.MySqlFlag_BLOB_FLAG)
		markBinary(f)
	case t == sqltypes.Text || t == sqltypes.Blob:
		f.Flags |= uint32(querypb.MySqlFlag_BLOB_FLAG)
	case sqltypes.IsIntegral(t) || t == sqltypes.Decimal || t == sqltypes.Date || t == sqltypes.Datetime || t == sqltypes.Timestamp || t == sqltypes.Time:
		markBinary(f)
	}
}

// markBinary marks a column as binary, without a character set.
func markBinary(f *querypb.Field) {
	f.Charset = uint32(gms.Collation_binary)
	f.Flags |= uint32(querypb.MySqlFlag_BINARY_FLAG)
}

// describeType sets the metadata that follow from the SQL type of a column.
func describeType(f *querypb.Field, t gms.Type) {
	switch t := t.(type) {
	case gms.DatetimeType: // DATETIME, TIMESTAMP and a column's TIME
		f.Decimals = uint32(t.Precision())
	case gms.NumberType:
		if f.Type == sqltypes.Int8 && t.DisplayWidth() == 1 { // BOOLEAN, to some clients
			f.ColumnLength = 1
		}
	}
}

// decimalsOfDouble means that a column's values have any number of digits after the point.
const decimalsOfDouble = 31
