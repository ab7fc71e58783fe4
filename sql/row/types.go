package row

import (
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/farmsql/farmsql/catalog"
)

// This file translates column types between go-mysql-server's and the catalog's. The catalog
// stores its own.

// baseKinds are the types whose query.Type determines the kind, whatever their
// parameters.
var baseKinds = map[query.Type]catalog.Kind{
	sqltypes.Int8: catalog.KindInt8, sqltypes.Int16: catalog.KindInt16, sqltypes.Int24: catalog.KindInt24,
	sqltypes.Int32: catalog.KindInt32, sqltypes.Int64: catalog.KindInt64,
	sqltypes.Uint8: catalog.KindUint8, sqltypes.Uint16: catalog.KindUint16, sqltypes.Uint24: catalog.KindUint24,
	sqltypes.Uint32: catalog.KindUint32, sqltypes.Uint64: catalog.KindUint64,
	sqltypes.Float32: catalog.KindFloat32, sqltypes.Float64: catalog.KindFloat64,
	sqltypes.Date: catalog.KindDate, sqltypes.Datetime: catalog.KindDatetime, sqltypes.Timestamp: catalog.KindTimestamp,
	sqltypes.Char: catalog.KindChar, sqltypes.VarChar: catalog.KindVarchar, sqltypes.Text: catalog.KindText,
	sqltypes.Binary: catalog.KindBinary, sqltypes.VarBinary: catalog.KindVarbinary, sqltypes.Blob: catalog.KindBlob,
}

// queryTypes is the inverse of baseKinds.
var queryTypes = func() map[catalog.Kind]query.Type {
	m := make(map[catalog.Kind]query.Type, len(baseKinds))
	for q, k := range baseKinds { // any order
		m[k] = q
	}
	return m
}()

// Describe returns the stored form of a column type.
func Describe(t gms.Type) (catalog.Type, error) {
	switch t := t.(type) {
	case types.BitType:
		return catalog.Type{Kind: catalog.KindBit, Length: uint32(t.NumberOfBits())}, nil
	case types.YearType_:
		return catalog.Type{Kind: catalog.KindYear}, nil
	case TimeType:
		return describeTime(t), nil
	case types.TimespanType_:
		return catalog.Type{Kind: catalog.KindTime, Precision: 6}, nil
	case types.JsonType:
		return catalog.Type{Kind: catalog.KindJSON}, nil
	case types.VectorType:
		return catalog.Type{Kind: catalog.KindVector, Length: uint32(t.Dimensions)}, nil
	case gms.EnumType:
		return catalog.Type{Kind: catalog.KindEnum, Collation: uint16(t.Collation()), Values: t.Values()}, nil
	case gms.SetType:
		return catalog.Type{Kind: catalog.KindSet, Collation: uint16(t.Collation()), Values: t.Values()}, nil
	case gms.DecimalType:
		return catalog.Type{Kind: catalog.KindDecimal, Precision: t.Precision(), Scale: t.Scale()}, nil
	}
	if d, ok := describeSpatial(t); ok {
		return d, nil
	}
	kind, ok := baseKinds[t.Type()]
	if !ok {
		return catalog.Type{}, fmt.Errorf("row: columns cannot have type %s", t)
	}
	d := catalog.Type{Kind: kind}
	switch t := t.(type) {
	case gms.StringType:
		d.Length, d.Collation = uint32(t.Length()), uint16(t.Collation())
		if kind == catalog.KindText || kind == catalog.KindBlob {
			d.Length = uint32(t.MaxByteLength())
		}
	case gms.DatetimeType:
		d.Precision = uint8(t.Precision())
	case gms.NumberType:
		d.Length = uint32(t.DisplayWidth())
	}
	return d, nil
}

func describeSpatial(t gms.Type) (catalog.Type, bool) {
	kind := catalog.KindInvalid
	switch t.(type) {
	case types.GeometryType:
		kind = catalog.KindGeometry
	case types.PointType:
		kind = catalog.KindPoint
	case types.LineStringType:
		kind = catalog.KindLineString
	case types.PolygonType:
		kind = catalog.KindPolygon
	case types.MultiPointType:
		kind = catalog.KindMultiPoint
	case types.MultiLineStringType:
		kind = catalog.KindMultiLineString
	case types.MultiPolygonType:
		kind = catalog.KindMultiPolygon
	case types.GeomCollType:
		kind = catalog.KindGeometryCollection
	default:
		return catalog.Type{}, false
	}
	srid, defined := t.(gms.SpatialColumnType).GetSpatialTypeSRID()
	return catalog.Type{Kind: kind, SRID: srid, HasSRID: defined}, true
}

// columnType returns the go-mysql-server type for a stored form.
func columnType(d catalog.Type) (gms.Type, error) {
	collation := gms.CollationID(d.Collation)
	switch d.Kind {
	case catalog.KindBit:
		return types.CreateBitType(uint8(d.Length))
	case catalog.KindYear:
		return types.Year, nil
	case catalog.KindTime:
		return timeType(d), nil
	case catalog.KindJSON:
		return types.JSON, nil
	case catalog.KindVector:
		return types.CreateVectorType(int(d.Length))
	case catalog.KindEnum:
		return types.CreateEnumType(d.Values, collation)
	case catalog.KindSet:
		return types.CreateSetType(d.Values, collation)
	case catalog.KindDecimal:
		return types.CreateColumnDecimalType(d.Precision, d.Scale)
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		return types.CreateDatetimeType(queryTypes[d.Kind], int(d.Precision))
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText,
		catalog.KindBinary, catalog.KindVarbinary, catalog.KindBlob:
		return types.CreateString(queryTypes[d.Kind], int64(d.Length), collation)
	}
	if t, ok := spatialType(d); ok {
		return t, nil
	}
	q, ok := queryTypes[d.Kind]
	if !ok {
		return nil, fmt.Errorf("row: stored column has unknown type %d", d.Kind)
	}
	return types.CreateNumberTypeWithDisplayWidth(q, int(d.Length))
}

func spatialType(d catalog.Type) (gms.Type, bool) {
	switch d.Kind {
	case catalog.KindGeometry:
		return types.GeometryType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindPoint:
		return types.PointType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindLineString:
		return types.LineStringType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindPolygon:
		return types.PolygonType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindMultiPoint:
		return types.MultiPointType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindMultiLineString:
		return types.MultiLineStringType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindMultiPolygon:
		return types.MultiPolygonType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	case catalog.KindGeometryCollection:
		return types.GeomCollType{SRID: d.SRID, DefinedSRID: d.HasSRID}, true
	}
	return nil, false
}
