package row

import (
	"context"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A text such as 1e111111111 becomes a decimal of that exponent, and computing with it takes minutes, which nothing
// ends. So texts pass through BoundedNumber before they become decimals.

// exponentMost bounds the powers of ten of numbers in texts. It is beyond what a DECIMAL (65 digits) and a double (1e308)
// hold: what is greater is out of range, and what is smaller is 0.
const exponentMost = 400

// BoundedNumber returns v; or, if v is a text that begins with a number with a great exponent, the text with a number
// that is out of range, too, or 0. JSON strings are texts here.
func BoundedNumber(v any) any {
	switch t := v.(type) {
	case string:
		return BoundedText(t)
	case []byte:
		if text := BoundedText(string(t)); text != string(t) {
			return []byte(text)
		}
	case types.JSONDocument:
		if text, ok := t.Val.(string); ok {
			return types.JSONDocument{Val: BoundedText(text)}
		}
	}
	return v
}

// convert converts a value to a type; a text for a decimal is bounded.
func convert(ctx context.Context, t gms.Type, v any) (any, gms.ConvertInRange, error) {
	if types.IsDecimal(t) {
		v = BoundedNumber(v)
	}
	return t.Convert(ctx, v)
}

// BoundedText is BoundedNumber of a text. It also cuts what big.Float, to which go-mysql-server turns, reads as a number
// and MySQL does not: 0x1p1000000000 is 0, and 1_0e1000000000 is 1.
func BoundedText(text string) string {
	if !strings.ContainsAny(text, "eEpP_") {
		return text
	}
	start := len(text) - len(strings.TrimLeft(text, gms.NumericCutSet))
	whole, behind, exponent, end := splitNumber(text[start:])
	end += start
	rest := text[end:]
	if whole+behind == "" {
		return text
	}
	if isForeign(rest) {
		rest = rest[:1]
	}
	order := orderOf(whole, behind, exponent)
	switch {
	case exponent == 0 || (order <= exponentMost && order >= -exponentMost && exponent <= exponentMost):
		return text[:end] + rest
	case order <= exponentMost:
		return "0" + rest
	case text[start] == '-':
		return "-1e" + strconv.Itoa(exponentMost+1) + rest
	}
	return "1e" + strconv.Itoa(exponentMost+1) + rest
}

// splitNumber splits the number that a text begins with into its digits before and behind the point, and its exponent,
// which is a great one of the same sign if no int holds it. end is the number's length.
func splitNumber(text string) (whole, behind string, exponent, end int) {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		end++
	}
	whole = leadingDigits(text[end:])
	end += len(whole)
	if strings.HasPrefix(text[end:], ".") {
		behind = leadingDigits(text[end+1:])
		end += 1 + len(behind)
	}
	if whole+behind == "" || end == len(text) || (text[end] != 'e' && text[end] != 'E') {
		return whole, behind, 0, end
	}
	sign := strings.TrimLeft(text[end+1:], "+-")
	digits := leadingDigits(sign)
	spelled := len(text) - end - 1 - len(sign) + len(digits) // with its sign
	if digits == "" || spelled > len(digits)+1 {
		return whole, behind, 0, end
	}
	exponent, _ = strconv.Atoi(text[end+1 : end+1+spelled]) // out of range is the greatest int, or the least
	const great = 1 << 32
	return whole, behind, max(min(exponent, great), -great), end + 1 + spelled
}

// leadingDigits returns the digits that a text begins with.
func leadingDigits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

// orderOf returns the power of ten that a number is less than, and not less than a tenth of; for 0 it is that of the
// least number.
func orderOf(whole, behind string, exponent int) int {
	if whole = strings.TrimLeft(whole, "0"); whole != "" {
		return len(whole) + exponent
	}
	digits := strings.TrimLeft(behind, "0")
	if digits == "" && exponent != 0 {
		return min(-exponentMost-1, exponent)
	}
	return exponent - (len(behind) - len(digits))
}

// isForeign reports whether what follows a number makes of it one of Go's, which MySQL does not know.
func isForeign(rest string) bool {
	if rest = strings.TrimRight(rest, gms.NumericCutSet); rest == "" || rest[len(rest)-1] < '0' || rest[len(rest)-1] > '9' {
		return false
	}
	switch rest[0] {
	case '_', 'p', 'P':
		return true
	case 'x', 'X':
		return strings.ContainsAny(rest, "pP")
	case 'b', 'B', 'o', 'O':
		return strings.ContainsAny(rest, "eEpP")
	}
	return false
}
