package sql

import (
	"cmp"
	"context"
	"sync"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A weightTable gives the weights that a collation has for characters.
// go-mysql-server looks each of them up in a map of all characters, which is most of
// what comparing strings costs; most of them are ASCII.
type weightTable struct {
	ascii [utf8.RuneSelf]int32
	other gms.CollationSorter
}

// weightTables are those that have been asked for, by collation.
var weightTables sync.Map

// weightsOf returns the weights of a collation, nil if it has none.
func weightsOf(c gms.CollationID) *weightTable {
	if w, ok := weightTables.Load(c); ok {
		return w.(*weightTable)
	}
	w := &weightTable{other: c.Sorter()}
	if w.other == nil {
		return nil
	}
	for r := range w.ascii {
		w.ascii[r] = w.other(rune(r))
	}
	weightTables.Store(c, w)
	return w
}

func (w *weightTable) of(r rune) int32 {
	if r < utf8.RuneSelf {
		return w.ascii[r]
	}
	return w.other(r)
}

// compare compares strings as go-mysql-server does, and returns false if one holds
// what is no character.
func (w *weightTable) compare(a, b string) (int, bool) { return compareWeights(w, a, b) }

func compareWeights[T string | []byte](w *weightTable, a, b T) (int, bool) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, m := runeAt(a, i)
		y, n := runeAt(b, j)
		if x == utf8.RuneError || y == utf8.RuneError {
			return 0, false
		}
		if x != y {
			if order := cmp.Compare(w.of(x), w.of(y)); order != 0 {
				return order, true
			}
		}
		i, j = i+m, j+n
	}
	return cmp.Compare(len(a)-i, len(b)-j), true
}

func runeAt[T string | []byte](s T, i int) (rune, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
}

// append appends the weights of a string, so that strings that are not equal have
// others, and returns false if it holds what is no character.
func (w *weightTable) append(dst []byte, s string) ([]byte, bool) {
	for _, r := range s {
		if r == utf8.RuneError {
			return dst, false
		}
		n := w.of(r)
		dst = append(dst, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return dst, true
}

// weightsOfType returns the weights of a type's characters, nil if it has none.
func weightsOfType(t gms.Type) *weightTable {
	s, ok := t.(types.StringType)
	if !ok || types.IsBinaryType(s) || s.Collation() == gms.Collation_binary || s.Collation().CharacterSet() != gms.CharacterSet_utf8mb4 {
		return nil
	}
	return weightsOf(s.Collation())
}

// A weighedType is a type of strings that are compared by a table of weights.
type weighedType struct {
	types.StringType
	weights *weightTable
}

// Compare implements gms.Type.
func (t weighedType) Compare(ctx context.Context, a, b any) (int, error) {
	x, ok := a.(string)
	y, too := b.(string)
	if ok && too {
		if order, ok := t.weights.compare(x, y); ok {
			return order, nil
		}
	}
	return t.StringType.Compare(ctx, a, b)
}

// weighed is an expression of such a type.
type weighed struct {
	gms.Expression
	typ gms.Type
}

// Type implements gms.Expression.
func (w weighed) Type(*gms.Context) gms.Type { return w.typ }

// sorted executes ORDER BY as go-mysql-server does, but that it compares strings by
// tables. It returns nil if there are none to be compared.
func (b *builder) sorted(ctx *gms.Context, n *plan.Sort, row gms.Row) (gms.RowIter, error) {
	fields := append(gms.SortFields{}, n.SortFields...)
	text := false
	for i, f := range fields {
		if w := weightsOfType(f.Column.Type(ctx)); w != nil {
			fields[i].Column = weighed{f.Column, weighedType{f.Column.Type(ctx).(types.StringType), w}}
			text = true
		}
	}
	if !text {
		return nil, nil
	}
	rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Child, row)
	if err != nil {
		return nil, err
	}
	return iters.NewSortIter(fields, rows), nil
}
