package plan

import (
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.Expression         = (*Membership)(nil)
	_ gms.CollationCoercible = (*Membership)(nil)
)

// A Membership is the condition that a column is among the rows of a subquery without Outers. The
// rows are read once for each execution.
type Membership struct {
	expression.UnaryExpressionStub
	query *Subquery
	codec *row.KeyCodec
}

// members has the rows of a subquery by the encodings of their values as keys. Equal values have equal encodings.
type members struct {
	keys             map[string]struct{}
	isEmpty, hasNull bool
}

// membership returns the value of an IN. It returns an error if IN compares differently from keys of the column.
func (b *builder) membership(e *gmsplan.InSubquery, s scope) (*Membership, error) {
	q, ok := e.Right().(*gmsplan.Subquery)
	if !ok || !q.Correlated().Empty() {
		return nil, refused("IN of rows that depend on the query around")
	}
	column, ok := b.comparable(e.Left(), Equal, s)
	if !ok {
		return nil, refused("%s in a subquery", e.Left())
	}
	v, err := b.scalar(q, scope{})
	if err != nil {
		return nil, err
	}
	if !isListOf(v.typ, s.codecs[column]) {
		return nil, refused("a column in a subquery of another type")
	}
	return &Membership{expression.UnaryExpressionStub{Child: e.Left()}, v.query, s.codecs[column]}, nil
}

// String returns the condition as plans show it.
func (m *Membership) String() string {
	return fmt.Sprintf("(%s in subquery %d)", m.Child, m.query.number)
}

// Type implements gms.Expression.
func (m *Membership) Type(*gms.Context) gms.Type { return types.Boolean }

// IsNullable implements gms.Expression.
func (m *Membership) IsNullable(*gms.Context) bool { return true }

// CollationCoercibility implements gms.CollationCoercible.
func (m *Membership) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, computedCoercibility
}

// computedCoercibility is the coercibility of numbers.
const computedCoercibility = 5

// WithChildren implements gms.Expression. All copies share the subquery.
func (m *Membership) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(m, len(children), 1)
	}
	n := *m
	n.Child = children[0]
	return &n, nil
}

// Eval implements gms.Expression. The result is false if the subquery has no rows. Otherwise a NULL
// on the left gives NULL, and so does a value that is not found if a row is NULL.
func (m *Membership) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	if m.query.members == nil {
		all, err := m.read(ctx)
		if err != nil {
			return nil, err
		}
		m.query.members = all
	}
	v, err := m.Child.Eval(ctx, row)
	all := m.query.members
	switch {
	case err != nil:
		return nil, err
	case all.isEmpty:
		return false, nil
	case v == nil:
		return nil, nil
	}
	key, ok := m.codec.AppendNative(nil, v)
	if !ok {
		return nil, refused("a value of %s", m.Child)
	}
	if _, has := all.keys[string(key)]; has {
		return true, nil
	}
	if all.hasNull {
		return nil, nil
	}
	return false, nil
}

// read returns the rows of the subquery.
func (m *Membership) read(ctx *gms.Context) (*members, error) {
	list, err := m.query.list(ctx)
	if err != nil {
		return nil, err
	}
	all := &members{keys: make(map[string]struct{}, len(*list.List)), isEmpty: len(*list.List) == 0}
	values, ok := Constants(m.codec, []Operand{{IsList: true}}, []Value{list})
	for _, v := range values {
		if v == nil {
			all.hasNull = true
			continue
		}
		key, isKey := m.codec.AppendNative(nil, v)
		ok = ok && isKey
		all.keys[string(key)] = struct{}{}
	}
	if !ok {
		return nil, refused("a value of subquery %d", m.query.number)
	}
	return all, nil
}
