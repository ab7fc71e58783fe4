package store

import (
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.Index         = (*Index)(nil)
	_ gms.OrderedIndex  = (*Index)(nil)
	_ gms.ExtendedIndex = (*Index)(nil)
)

// An Index describes one of our indexes to go-mysql-server.
type Index struct {
	info *TableInfo
	// Key encodes the keys of the index.
	Key  *KeyInfo
	expr []string
}

func (t *Table) gmsIndex(info *TableInfo, k *KeyInfo) *Index {
	x := &Index{info: info, Key: k, expr: make([]string, len(k.Columns))}
	for i, c := range k.Columns {
		x.expr[i] = info.Name + "." + info.Columns[c].Name
	}
	return x
}

// ID implements gms.Index.
func (x *Index) ID() string { return x.Key.Name }

// Database implements gms.Index.
func (x *Index) Database() string { return x.info.DB }

// Table implements gms.Index.
func (x *Index) Table() string { return x.info.Name }

// Expressions implements gms.Index.
func (x *Index) Expressions() []string { return x.expr }

// IsUnique implements gms.Index.
func (x *Index) IsUnique() bool { return x.Key.Unique }

// IsSpatial implements gms.Index. Spatial indexes are maintained, but lookups do
// not use them.
func (x *Index) IsSpatial() bool { return x.Key.Spatial }

// IsFullText implements gms.Index.
func (x *Index) IsFullText() bool { return false }

// IsVector implements gms.Index.
func (x *Index) IsVector() bool { return false }

// Comment implements gms.Index.
func (x *Index) Comment() string { return x.Key.Comment }

// IndexType implements gms.Index.
func (x *Index) IndexType() string {
	switch {
	case x.Key.Spatial:
		return "SPATIAL"
	case x.Key.Access == catalog.AccessHash:
		return "HASH"
	}
	return "BTREE"
}

// IsGenerated implements gms.Index.
func (x *Index) IsGenerated() bool { return false }

// ColumnExpressionTypes implements gms.Index.
func (x *Index) ColumnExpressionTypes(*gms.Context) []gms.ColumnExpressionType {
	t := make([]gms.ColumnExpressionType, len(x.expr))
	for i, c := range x.Key.Columns {
		typ := x.info.Rows.Columns[c].Type
		if types.IsDecimal(typ) {
			typ = boundDecimal{typ.(gms.DecimalType)}
		}
		t[i] = gms.ColumnExpressionType{Type: row.BoundType(typ), Expression: x.expr[i]}
	}
	return t
}

// ExtendedExpressions implements gms.ExtendedIndex: an index that is not unique
// also has the primary key's columns.
func (x *Index) ExtendedExpressions(*gms.Context) []string {
	all := slices.Clone(x.expr)
	for _, c := range x.Key.appended() {
		all = append(all, x.info.Name+"."+x.info.Columns[c].Name)
	}
	return all
}

// ExtendedColumnExpressionTypes implements gms.ExtendedIndex.
func (x *Index) ExtendedColumnExpressionTypes(ctx *gms.Context) []gms.ColumnExpressionType {
	all := x.ColumnExpressionTypes(ctx)
	for i, e := range x.ExtendedExpressions(ctx)[len(x.expr):] {
		all = append(all, gms.ColumnExpressionType{Type: row.BoundType(x.info.Rows.Columns[x.Key.appended()[i]].Type), Expression: e})
	}
	return all
}

// CanSupport implements gms.Index: a hash table supports lookups of whole keys
// only.
func (x *Index) CanSupport(ctx *gms.Context, ranges ...gms.Range) bool {
	if x.Key.Spatial {
		return false
	}
	if x.Key.Access != catalog.AccessHash {
		return true
	}
	for _, r := range ranges {
		r, ok := r.(gms.MySQLRange)
		if !ok {
			return false
		}
		if kr, empty := x.Key.keyRange(ctx, r); !empty && (!kr.Point || kr.HasNull) {
			return false
		}
	}
	return true
}

// CanSupportOrderBy implements gms.Index. go-mysql-server calls it for ORDER BY of
// vector distances.
func (x *Index) CanSupportOrderBy(gms.Expression) bool { return false }

// PrefixLengths implements gms.Index. It returns nil if no part is a prefix.
func (x *Index) PrefixLengths() []uint16 {
	lengths := make([]uint16, len(x.Key.Parts))
	hasPrefix := false
	for i, p := range x.Key.Parts {
		lengths[i] = uint16(p.Length)
		hasPrefix = hasPrefix || p.Length > 0
	}
	if !hasPrefix {
		return nil
	}
	return lengths
}

// Order implements gms.OrderedIndex.
func (x *Index) Order(*gms.Context) gms.IndexOrder {
	if x.Key.Access == catalog.AccessHash || x.PrefixLengths() != nil {
		return gms.IndexOrderNone
	}
	return gms.IndexOrderAsc
}

// Reversible implements gms.OrderedIndex.
func (x *Index) Reversible(ctx *gms.Context) bool { return x.Order(ctx) == gms.IndexOrderAsc }

// A boundDecimal is the type for bounds on a decimal column. The column's own type
// would round a bound to its scale.
type boundDecimal struct{ gms.DecimalType }

// Convert implements gms.Type.
func (boundDecimal) Convert(ctx context.Context, v any) (any, gms.ConvertInRange, error) {
	return types.InternalDecimalType.Convert(ctx, row.BoundedNumber(v))
}

// Equals implements gms.Type.
func (d boundDecimal) Equals(t gms.Type) bool {
	if other, ok := t.(boundDecimal); ok {
		t = other.DecimalType
	}
	return d.DecimalType.Equals(t)
}
