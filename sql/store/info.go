package store

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// primaryName is MySQL's name for a primary key's index.
const primaryName = "PRIMARY"

// A TableInfo is a table's descriptor with go-mysql-server's schema and with codecs, for sessions in one
// time zone. It is shared and immutable.
type TableInfo struct {
	*catalog.Table
	// Schema is go-mysql-server's schema; it is never changed.
	Schema gms.PrimaryKeySchema
	Exact  gms.Schema // the schema for comparing rows
	// Rows encodes and decodes rows.
	Rows *row.Codec
	// PrimaryKey is the index that owns the rows, and Secondary are the others, in the order of
	// Indexes.
	PrimaryKey *KeyInfo
	Secondary  []*KeyInfo
	// checked are the secondary indexes in the order in which MySQL looks for duplicates of a row.
	checked []*KeyInfo
	// AutoColumn is the position of the AUTO_INCREMENT column, or -1.
	AutoColumn int
	// HasVirtual is set if go-mysql-server computes some of the columns.
	HasVirtual bool
	// referred are the columns that foreign keys of other tables refer to; all columns of indexes if that is not known.
	referred map[int]bool
	// zoned has the table as sessions in other time zones than UTC see it; nil if it looks the same to all.
	zoned *sync.Map
}

// A KeyInfo encodes the keys of one index.
type KeyInfo struct {
	*catalog.Index
	// Codecs encode the parts of a key.
	Codecs []row.KeyCodec
	// Columns are the positions of the parts in a row.
	Columns []int
	// primary is the key that a secondary index appends to its entries; nil if it appends none, and
	// for a primary key.
	primary *KeyInfo
	// lookupParts maps each part of an entry to a part of a lookup, or to -1; nil if they are the same.
	// An index that appends the primary key may have a column twice, and a lookup names it once.
	lookupParts []int
}

// NewTableInfo makes the TableInfo of a descriptor.
func NewTableInfo(t *catalog.Table) (*TableInfo, error) {
	info := &TableInfo{Table: t, AutoColumn: -1}
	var err error
	if info.Rows, err = row.NewCodec(t); err != nil {
		return nil, err
	}
	if info.PrimaryKey, err = newKeyInfo(t, &t.Primary); err != nil {
		return nil, err
	}
	for i := range t.Indexes {
		k, err := newKeyInfo(t, &t.Indexes[i])
		if err != nil {
			return nil, err
		}
		if !k.Unique && t.Primary.Declared {
			k.primary = info.PrimaryKey
		}
		info.Secondary = append(info.Secondary, k)
	}
	info.checked = info.inOrderOfChecks()
	if info.Schema, err = tableSchema(t, info.Rows); err != nil {
		return nil, err
	}
	info.Exact = compat.ExactSchema(info.Schema.Schema)
	for i, c := range t.Columns {
		if c.AutoIncrement {
			info.AutoColumn = i
		}
		info.HasVirtual = info.HasVirtual || c.Virtual
		if c.Type.Kind == catalog.KindTimestamp && info.zoned == nil {
			info.zoned = &sync.Map{}
		}
	}
	if len(t.ReferencedBy) > 0 {
		info.referred = info.indexed()
	}
	// The keys of an index with a virtual column must be the same whoever computes them.
	if info.HasComputedKeys() {
		info.zoned = nil
	}
	return info, nil
}

// In returns the table as sessions in a time zone see it: with the wall times of its TIMESTAMPs.
func (info *TableInfo) In(z *row.Zone) *TableInfo {
	if z == nil || info.zoned == nil {
		return info
	}
	if in, ok := info.zoned.Load(z); ok {
		return in.(*TableInfo)
	}
	made := *info
	made.zoned, made.Rows, made.PrimaryKey, made.Secondary = nil, info.Rows.In(z), info.PrimaryKey.in(z), nil
	for _, k := range info.Secondary {
		k = k.in(z)
		if k.primary != nil {
			k.primary = made.PrimaryKey
		}
		made.Secondary = append(made.Secondary, k)
	}
	made.checked = made.inOrderOfChecks()
	in, _ := info.zoned.LoadOrStore(z, &made)
	return in.(*TableInfo)
}

func (k *KeyInfo) in(z *row.Zone) *KeyInfo {
	in := *k
	in.Codecs = slices.Clone(k.Codecs)
	for i := range in.Codecs {
		in.Codecs[i] = in.Codecs[i].In(z)
	}
	return &in
}

func newKeyInfo(t *catalog.Table, x *catalog.Index) (*KeyInfo, error) {
	k := &KeyInfo{Index: x}
	for _, p := range x.Parts {
		c, err := row.NewKeyCodec(t.Columns[p.Column].Type, p.Length)
		if err != nil {
			return nil, err
		}
		k.Codecs = append(k.Codecs, c)
		k.Columns = append(k.Columns, int(p.Column))
	}
	return k, nil
}

func tableSchema(t *catalog.Table, rows *row.Codec) (gms.PrimaryKeySchema, error) {
	schema := make(gms.Schema, len(t.Columns))
	for i, c := range t.Columns {
		schema[i] = &gms.Column{
			Name: c.Name, Source: t.Name, DatabaseSource: t.DB, Type: rows.Columns[i].Type,
			Default: unresolved(c.Default), Generated: unresolved(c.Generated), OnUpdate: unresolved(c.OnUpdate),
			Comment: c.Comment, Extra: compat.Extra(&c), Nullable: c.Nullable, AutoIncrement: c.AutoIncrement,
			Virtual: c.Virtual, Hidden: c.Hidden, HiddenSystem: c.HiddenSystem,
		}
	}
	if !t.Primary.Declared {
		return gms.NewPrimaryKeySchema(schema), nil
	}
	ordinals := make([]int, len(t.Primary.Parts))
	for i, p := range t.Primary.Parts {
		schema[p.Column].PrimaryKey = true
		ordinals[i] = int(p.Column)
	}
	return gms.NewPrimaryKeySchema(schema, ordinals...), nil
}

// unresolved returns an expression for go-mysql-server to parse when it needs it.
func unresolved(text string) *gms.ColumnDefaultValue {
	if text == "" {
		return nil
	}
	return gms.NewUnresolvedColumnDefaultValue(text)
}

// Keys returns all indexes, the primary key first.
func (info *TableInfo) Keys() []*KeyInfo {
	return append([]*KeyInfo{info.PrimaryKey}, info.Secondary...)
}

// inOrderOfChecks returns the secondary indexes in MySQL's order: which row REPLACE and ON DUPLICATE KEY UPDATE change, and
// which key an error names, depends on it if several rows are in the way. Unique keys without NULLs are first, then
// other unique keys; of each, those with a prefix of a column are last.
func (info *TableInfo) inOrderOfChecks() []*KeyInfo {
	rank := func(k *KeyInfo) int {
		if !k.Unique {
			return 4
		}
		n := 0
		if slices.ContainsFunc(k.Columns, func(at int) bool { return info.Columns[at].Nullable }) {
			n = 2
		}
		if slices.ContainsFunc(k.Codecs, func(c row.KeyCodec) bool { return c.Prefix > 0 }) {
			n++
		}
		return n
	}
	keys := slices.Clone(info.Secondary)
	slices.SortStableFunc(keys, func(a, b *KeyInfo) int { return rank(a) - rank(b) })
	return keys
}

// uniques returns the number of the table's unique keys.
func (info *TableInfo) uniques() int {
	n := 0
	for _, k := range info.Keys() {
		if info.IsUnique(k) {
			n++
		}
	}
	return n
}

// IsUnique reports whether the table has at most one row of each key of an index.
func (info *TableInfo) IsUnique(k *KeyInfo) bool {
	if k == info.PrimaryKey {
		return !info.IsKeyless()
	}
	return k.Unique
}

// IsKeyless reports whether the table has no primary key of its own.
func (info *TableInfo) IsKeyless() bool { return !info.Table.Primary.Declared }

// autoMax returns the greatest number that the AUTO_INCREMENT column can hold. The sequence stays
// there, as InnoDB's does, so that the next insert fails as a duplicate.
func (info *TableInfo) autoMax() uint64 {
	if info.AutoColumn < 0 {
		return math.MaxUint64
	}
	switch k := info.Columns[info.AutoColumn].Type.Kind; k {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64:
		return 1<<(row.IntBits[k]-1) - 1
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32:
		return 1<<row.IntBits[k] - 1
	}
	return math.MaxUint64
}

// key appends the parts of a row's key to dst, and reports whether any is NULL.
func (k *KeyInfo) key(ctx context.Context, dst []byte, row gms.Row) ([]byte, bool, error) {
	null := false
	var err error
	for i := range k.Codecs {
		v := row[k.Columns[i]]
		null = null || v == nil
		if dst, err = k.Codecs[i].Append(ctx, dst, v); err != nil {
			return dst, null, err
		}
	}
	return dst, null, nil
}

// Entry returns a row's key in a secondary index: the index's own parts and, unless those are
// unique, the primary key. NULLs are not equal to each other, so that a key with a NULL is never
// unique.
func (k *KeyInfo) Entry(ctx context.Context, r gms.Row, primary []byte) (key []byte, unique bool, err error) {
	key, null, err := k.key(ctx, make([]byte, 0, 64), r)
	if err != nil {
		return nil, false, err
	}
	unique = k.Unique && !null
	if !unique {
		key = append(key, primary...)
	}
	if len(key) > row.KeyBytesMax {
		return nil, false, myerr.KeyTooLong.New()
	}
	return key, unique, nil
}

// differs reports whether two rows may differ in the index's own columns. If it returns false, the rows' keys are the
// same.
func (k *KeyInfo) differs(a, b gms.Row) bool {
	return slices.ContainsFunc(k.Columns, func(c int) bool { return !areIdentical(a[c], b[c]) })
}

// areIdentical reports whether two values of a column are known to be the same without their type.
func areIdentical(a, b any) bool {
	switch a.(type) {
	case nil, int8, int16, int32, int64, uint8, uint16, uint32, uint64, string, time.Time, decimal.Decimal:
		return a == b // pointers in times and decimals are compared, not what they point to
	}
	return false
}

// appended returns the columns of the primary key that an index appends to its own columns, up to
// the first column that is only a prefix in the primary key.
func (k *KeyInfo) appended() []int {
	if k.primary == nil {
		return nil
	}
	var more []int
	for i, c := range k.primary.Columns {
		if k.primary.Codecs[i].Prefix > 0 {
			break
		}
		if !slices.Contains(k.Columns, c) {
			more = append(more, c)
		}
	}
	return more
}

// LookupColumns returns the columns that a lookup may bound, in the order of the index: the index's own and, if its
// entries end with the primary key, those of the primary key.
func (k *KeyInfo) LookupColumns() []int { return append(slices.Clone(k.Columns), k.appended()...) }

// extended returns k with the appended primary key as parts of its own.
func (k *KeyInfo) extended() *KeyInfo {
	x := *k
	x.primary = nil
	// A lookup names each column once. It cannot use a part of the primary key that is a prefix,
	// nor the parts after that: their x.lookupParts is -1.
	order := append(slices.Clone(k.Columns), k.appended()...)
	x.Codecs, x.Columns = slices.Concat(k.Codecs, k.primary.Codecs), slices.Concat(k.Columns, k.primary.Columns)
	for i, c := range x.Columns {
		at := slices.Index(order, c)
		if i < len(k.Columns) {
			at = i
		}
		x.lookupParts = append(x.lookupParts, at)
	}
	return &x
}

// withoutPrefixes returns k with codecs of whole values in place of prefixes.
func (k *KeyInfo) withoutPrefixes() *KeyInfo {
	w := *k
	w.Codecs = slices.Clone(k.Codecs)
	for i := range w.Codecs {
		w.Codecs[i].Prefix = 0
	}
	return &w
}

// Key returns the index that has a name.
func (info *TableInfo) Key(name string) *KeyInfo {
	if strings.EqualFold(name, primaryName) {
		return info.PrimaryKey
	}
	if i := info.Table.Index(name); i >= 0 {
		return info.Secondary[i]
	}
	return nil
}

// Codec returns the codec of a column's values as a part of a key, whether or not the column is in
// an index.
func (info *TableInfo) Codec(column int) *row.KeyCodec {
	k := row.MakeKeyCodec(info.Rows.Columns[column].ValueCodec, info.Columns[column].Type)
	k.Nullable = info.Columns[column].Nullable
	return &k
}

// InReference reports whether a foreign key has to be checked when a column changes: a foreign key of this table that
// has the column, or a foreign key of another table that refers to it.
func (info *TableInfo) InReference(column int) bool {
	for i := range info.ForeignKeys {
		if slices.ContainsFunc(info.ForeignKeys[i].Columns, func(name string) bool { return SameName(name, info.Columns[column].Name) }) {
			return true
		}
	}
	return info.referred[column]
}

// refer finds the columns that foreign keys of other tables refer to. This table's descriptor names those keys: they
// cannot change unless the descriptor does. If one is not found, referred keeps the columns of all indexes.
func (info *TableInfo) refer(descriptor func(db, name string) (*catalog.Table, error)) {
	all := make(map[int]bool)
	for _, r := range info.ReferencedBy {
		columns, ok := info.referredBy(r, descriptor)
		if !ok {
			return
		}
		for _, c := range columns {
			all[c] = true
		}
	}
	info.referred = all
}

// referredBy returns the columns that a foreign key refers to; false if it cannot be found.
func (info *TableInfo) referredBy(r catalog.Reference, descriptor func(db, name string) (*catalog.Table, error)) (columns []int, ok bool) {
	child, err := descriptor(r.DB, r.Table)
	if err != nil {
		return nil, false
	}
	i := child.ForeignKey(r.Name)
	if i < 0 {
		return nil, false
	}
	for _, name := range child.ForeignKeys[i].ParentColumns {
		columns = append(columns, info.Column(name))
	}
	return columns, !slices.Contains(columns, -1)
}

// indexed returns the columns of all indexes: other tables can refer to no others.
func (info *TableInfo) indexed() map[int]bool {
	all := make(map[int]bool)
	for _, k := range info.Keys() {
		for _, c := range k.Columns {
			all[c] = true
		}
	}
	return all
}

// ChangeNeeds returns the columns of a row that its change needs to know: those that an UPDATE sets, and those of the indexes
// that change with them. If it sets a column of the primary key, which entries of other indexes have, too, these are those of all
// indexes; so they are for a DELETE, which sets none.
func (info *TableInfo) ChangeNeeds(set []int) []int {
	needs := slices.Concat(info.PrimaryKey.Columns, set)
	isSet := func(at int) bool { return slices.Contains(set, at) }
	all := set == nil || slices.ContainsFunc(info.PrimaryKey.Columns, isSet)
	for _, k := range info.Secondary {
		if all || slices.ContainsFunc(k.Columns, isSet) {
			needs = append(needs, k.Columns...)
		}
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}
