package row

import (
	"cmp"
	"sync"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// Weights are a collation's weights of characters. go-mysql-server looks up each weight in a map
// of all characters, which takes most of the time of comparing strings; an array of the ASCII
// weights saves most look-ups.
type Weights struct {
	ascii [utf8.RuneSelf]int32
	other gms.CollationSorter
}

// weightTables caches Weights by collation.
var weightTables sync.Map

// WeightsOf returns the weights of a collation, nil if it has none.
func WeightsOf(c gms.CollationID) *Weights {
	if w, ok := weightTables.Load(c); ok {
		return w.(*Weights)
	}
	w := &Weights{other: c.Sorter()}
	if w.other == nil {
		return nil
	}
	for r := range w.ascii {
		w.ascii[r] = w.other(rune(r))
	}
	weightTables.Store(c, w)
	return w
}

func (w *Weights) weightOf(r rune) int32 {
	if r < utf8.RuneSelf {
		return w.ascii[r]
	}
	return w.other(r)
}

// Compare compares strings as go-mysql-server does, and returns false if one holds an invalid
// character.
func (w *Weights) Compare(a, b string) (int, bool) { return CompareWeights(w, a, b) }

// CompareWeights compares texts by their characters' weights, and returns false if one holds
// an invalid character.
func CompareWeights[T string | []byte](w *Weights, a, b T) (int, bool) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, m := runeAt(a, i)
		y, n := runeAt(b, j)
		if x == utf8.RuneError || y == utf8.RuneError {
			return 0, false
		}
		if x != y {
			if order := cmp.Compare(w.weightOf(x), w.weightOf(y)); order != 0 {
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

// Append appends the weights of a string, so that unequal strings have different weights, and
// returns false if s holds an invalid character.
func (w *Weights) Append(dst []byte, s string) ([]byte, bool) {
	for _, r := range s {
		if r == utf8.RuneError {
			return dst, false
		}
		n := w.weightOf(r)
		dst = append(dst, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return dst, true
}

// WeightsOfType returns the weights of a type's characters, nil if it has none.
func WeightsOfType(t gms.Type) *Weights {
	s, ok := t.(types.StringType)
	if !ok || types.IsBinaryType(s) || s.Collation() == gms.Collation_binary || s.Collation().CharacterSet() != gms.CharacterSet_utf8mb4 {
		return nil
	}
	return WeightsOf(s.Collation())
}
