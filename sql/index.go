package sql

import (
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
)

var (
	_ gms.Index         = (*index)(nil)
	_ gms.OrderedIndex  = (*index)(nil)
	_ gms.ExtendedIndex = (*index)(nil)
)

// An index is what go-mysql-server is told of one.
type index struct {
	info *tableInfo
	key  *keyInfo
	expr []string
}

func (t *Table) gmsIndex(info *tableInfo, k *keyInfo) *index {
	x := &index{info: info, key: k, expr: make([]string, len(k.columns))}
	for i, c := range k.columns {
		x.expr[i] = info.Name + "." + info.Columns[c].Name
	}
	return x
}

// ID implements gms.Index.
func (x *index) ID() string { return x.key.Name }

// Database implements gms.Index.
func (x *index) Database() string { return x.info.DB }

// Table implements gms.Index.
func (x *index) Table() string { return x.info.Name }

// Expressions implements gms.Index.
func (x *index) Expressions() []string { return x.expr }

// IsUnique implements gms.Index.
func (x *index) IsUnique() bool { return x.key.Unique }

// IsSpatial implements gms.Index. Spatial indexes are kept, but lookups do not
// use them.
func (x *index) IsSpatial() bool { return x.key.Spatial }

// IsFullText implements gms.Index.
func (x *index) IsFullText() bool { return false }

// IsVector implements gms.Index.
func (x *index) IsVector() bool { return false }

// Comment implements gms.Index.
func (x *index) Comment() string { return x.key.Comment }

// IndexType implements gms.Index.
func (x *index) IndexType() string {
	switch {
	case x.key.Spatial:
		return "SPATIAL"
	case x.key.Access == catalog.AccessHash:
		return "HASH"
	}
	return "BTREE"
}

// IsGenerated implements gms.Index.
func (x *index) IsGenerated() bool { return false }

// ColumnExpressionTypes implements gms.Index.
func (x *index) ColumnExpressionTypes(*gms.Context) []gms.ColumnExpressionType {
	t := make([]gms.ColumnExpressionType, len(x.expr))
	for i, c := range x.key.columns {
		typ := x.info.rows.Columns[c].Type
		if types.IsDecimal(typ) {
			typ = boundDecimal{typ.(gms.DecimalType)}
		}
		t[i] = gms.ColumnExpressionType{Type: typ, Expression: x.expr[i]}
	}
	return t
}

// ExtendedExpressions implements gms.ExtendedIndex: what is not unique goes on
// with the primary key.
func (x *index) ExtendedExpressions(*gms.Context) []string {
	all := slices.Clone(x.expr)
	for _, c := range x.key.appended() {
		all = append(all, x.info.Name+"."+x.info.Columns[c].Name)
	}
	return all
}

// ExtendedColumnExpressionTypes implements gms.ExtendedIndex.
func (x *index) ExtendedColumnExpressionTypes(ctx *gms.Context) []gms.ColumnExpressionType {
	all := x.ColumnExpressionTypes(ctx)
	for i, e := range x.ExtendedExpressions(ctx)[len(x.expr):] {
		all = append(all, gms.ColumnExpressionType{Type: x.info.rows.Columns[x.key.appended()[i]].Type, Expression: e})
	}
	return all
}

// CanSupport implements gms.Index: a hash table answers for whole keys only.
func (x *index) CanSupport(ctx *gms.Context, ranges ...gms.Range) bool {
	if x.key.Spatial {
		return false
	}
	if x.key.Access != catalog.AccessHash {
		return true
	}
	for _, r := range ranges {
		r, ok := r.(gms.MySQLRange)
		if !ok {
			return false
		}
		if kr, empty := x.key.keyRange(ctx, r); !empty && (!kr.point || kr.hasNull) {
			return false
		}
	}
	return true
}

// CanSupportOrderBy implements gms.Index. It asks about distances.
func (x *index) CanSupportOrderBy(gms.Expression) bool { return false }

// PrefixLengths implements gms.Index.
func (x *index) PrefixLengths() []uint16 {
	lengths := make([]uint16, len(x.key.Parts))
	any := false
	for i, p := range x.key.Parts {
		lengths[i] = uint16(p.Length)
		any = any || p.Length > 0
	}
	if !any {
		return nil
	}
	return lengths
}

// Order implements gms.OrderedIndex.
func (x *index) Order(*gms.Context) gms.IndexOrder {
	if x.key.Access == catalog.AccessHash || x.PrefixLengths() != nil {
		return gms.IndexOrderNone
	}
	return gms.IndexOrderAsc
}

// Reversible implements gms.OrderedIndex.
func (x *index) Reversible(ctx *gms.Context) bool { return x.Order(ctx) == gms.IndexOrderAsc }

// A boundDecimal is the type of a column that bounds are given for. The column's
// own would round them to its scale.
type boundDecimal struct{ gms.DecimalType }

// Convert implements gms.Type.
func (boundDecimal) Convert(ctx context.Context, v any) (any, gms.ConvertInRange, error) {
	return types.InternalDecimalType.Convert(ctx, v)
}

// Equals implements gms.Type.
func (d boundDecimal) Equals(t gms.Type) bool {
	if other, ok := t.(boundDecimal); ok {
		t = other.DecimalType
	}
	return d.DecimalType.Equals(t)
}
