package compat

import (
	"encoding/binary"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server's LOCATE ignores case whatever the collation is. Its INSTR never ignores case.
// Its INSERT counts bytes.

func init() {
	locate := func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
		start := int64(1)
		if len(v) > 2 {
			n, err := wholeOf(ctx, v[2])
			if err != nil {
				return nil, err
			}
			start = n
		}
		return position(ctx, c, v[1], v[0], start)
	}
	registerScalars(
		&scalar{"locate", 2, 3, always(types.Int64), locate},
		&scalar{"instr", 2, 2, always(types.Int64), func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
			return position(ctx, c, v[0], v[1], 1)
		}})
}

// position returns the number of the character at which a text contains a part, searching from the
// character start on; 0 if the text does not contain it. The first character has the number 1. position
// compares by the collation of both texts, and compares and counts binary strings by bytes.
func position(ctx *gms.Context, c *scalarCall, textValue, partValue any, start int64) (any, error) {
	text, err := padText(ctx, textValue)
	if err != nil {
		return nil, err
	}
	part, err := padText(ctx, partValue)
	if err != nil {
		return nil, err
	}
	units, parts, size := text, part, int64(1)
	if weight := sorterOf(ctx, c.ChildExpressions[0], c.ChildExpressions[1]); weight != nil {
		units, parts, size = weightsOf(text, weight), weightsOf(part, weight), weightBytes
	}
	if count := int64(len(units)) / size; start < 1 || (start > 1 && start > count) {
		return int64(0), nil
	}
	for at := int((start - 1) * size); ; at++ {
		next := strings.Index(units[at:], parts)
		if next < 0 {
			return int64(0), nil
		}
		if at += next; at%int(size) == 0 { // other places are in the middle of a weight
			return int64(at)/size + 1, nil
		}
	}
}

// sorterOf returns the weights of the collation by which two expressions are compared; nil if they
// are compared by bytes.
func sorterOf(ctx *gms.Context, a, b gms.Expression) gms.CollationSorter {
	if types.IsBinaryType(a.Type(ctx)) || types.IsBinaryType(b.Type(ctx)) {
		return nil
	}
	left, l := gms.GetCoercibility(ctx, a)
	right, r := gms.GetCoercibility(ctx, b)
	collation, _ := gms.ResolveCoercibility(left, l, right, r)
	if collation == gms.Collation_binary || collation == gms.Collation_Unspecified { // numbers, too, have the binary collation
		collation = gms.Collation_Default
	}
	return collation.Sorter()
}

// weightBytes is the length of a weight in weightsOf.
const weightBytes = 4

// weightsOf returns the weights of a text's characters one after the other, each as four bytes.
func weightsOf(s string, weight gms.CollationSorter) string {
	b := make([]byte, 0, weightBytes*len(s))
	for _, r := range s {
		b = binary.BigEndian.AppendUint32(b, uint32(weight(r)))
	}
	return string(b)
}

// inserted computes INSERT.
func inserted(ctx *gms.Context, args gms.Row) (any, error) {
	text, err := padText(ctx, args[0])
	if err != nil {
		return nil, err
	}
	instead, err := padText(ctx, args[3])
	if err != nil {
		return nil, err
	}
	first, err := wholeOf(ctx, args[1])
	if err != nil {
		return nil, err
	}
	length, err := wholeOf(ctx, args[2])
	if err != nil {
		return nil, err
	}
	_, isBinary := args[0].([]byte)
	if _, isBytes := args[3].([]byte); isBinary || isBytes {
		return splice([]byte(text), []byte(instead), first, length), nil
	}
	return string(splice([]rune(text), []rune(instead), first, length)), nil
}

// splice replaces length characters, beginning with the first-th, by instead. If length is negative, or
// greater than what is left, it replaces the rest. If there is no such first character, it replaces nothing.
func splice[C byte | rune](text, instead []C, first, length int64) []C {
	n := int64(len(text))
	if first < 1 || first > n {
		return text
	}
	if rest := n - first + 1; length < 0 || length > rest {
		length = rest
	}
	out := make([]C, 0, len(text)+len(instead))
	out = append(append(out, text[:first-1]...), instead...)
	return append(out, text[first-1+length:]...)
}
