package compat

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A jsonPath is a path into a JSON document with MySQL's rules. In go-mysql-server's paths, a key
// applies to the elements of an array, and an index into a value that is not an array fails. LAST,
// ranges and ** are missing.
type jsonPath []jsonLeg

// A jsonLeg is one step of a path.
type jsonLeg struct {
	kind     legKind
	key      string
	from, to jsonCell
	isRange  bool // [n to m]; otherwise from and to are the same
}

type legKind uint8

const (
	legKey     legKind = iota // .key
	legKeys                   // .*
	legCells                  // [n] or [n to m]
	legAll                    // [*]
	legAnyward                // **
)

// A jsonCell is the index of an element of an array, counted from the array's end if isLast is
// set.
type jsonCell struct {
	at     int
	isLast bool
}

// index returns the cell's place in an array of a length; it may lie outside of the array.
func (c jsonCell) index(length int) int {
	if c.isLast {
		return length - 1 - c.at
	}
	return c.at
}

// parsePath parses a path; false if the text is not a path.
func parsePath(s string) (jsonPath, bool) {
	s, ok := strings.CutPrefix(strings.TrimSpace(s), "$")
	if !ok {
		return nil, false
	}
	var p jsonPath
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		var leg jsonLeg
		switch {
		case strings.HasPrefix(s, "**"):
			leg, s = jsonLeg{kind: legAnyward}, s[2:]
		case s[0] == '.':
			leg, s, ok = parseKey(strings.TrimLeft(s[1:], " "))
		case s[0] == '[':
			leg, s, ok = parseCells(s[1:])
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
		p = append(p, leg)
	}
	if len(p) > 0 && p[len(p)-1].kind == legAnyward {
		return nil, false
	}
	return p, true
}

// parseKey parses the key after a point.
func parseKey(s string) (leg jsonLeg, rest string, ok bool) {
	if strings.HasPrefix(s, "*") {
		return jsonLeg{kind: legKeys}, s[1:], true
	}
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return leg, "", false
		}
		key, err := strconv.Unquote(quoted)
		return jsonLeg{key: key}, s[len(quoted):], err == nil
	}
	end := strings.IndexAny(s, ".[* ")
	if end < 0 {
		end = len(s)
	}
	return jsonLeg{key: s[:end]}, s[end:], end > 0
}

// parseCells parses the index or range after a bracket.
func parseCells(s string) (leg jsonLeg, rest string, ok bool) {
	inside, rest, ok := strings.Cut(s, "]")
	if !ok {
		return leg, "", false
	}
	inside = strings.TrimSpace(inside)
	if inside == "*" {
		return jsonLeg{kind: legAll}, rest, true
	}
	from, to, isRange := strings.Cut(inside, " to ")
	leg.kind = legCells
	if leg.from, ok = parseCell(from); !ok {
		return leg, "", false
	}
	leg.to = leg.from
	if isRange {
		leg.to, ok = parseCell(to)
		leg.isRange = true
	}
	return leg, rest, ok
}

func parseCell(s string) (c jsonCell, ok bool) {
	s = strings.TrimSpace(s)
	if rest, isLast := strings.CutPrefix(s, "last"); isLast {
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return jsonCell{isLast: true}, true
		}
		less, isLess := strings.CutPrefix(rest, "-")
		n, err := strconv.ParseUint(strings.TrimSpace(less), 10, 31)
		return jsonCell{at: int(n), isLast: true}, isLess && err == nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return jsonCell{at: int(n)}, err == nil
}

// isOne reports whether a path leads to one value at most.
func (p jsonPath) isOne() bool {
	return !slices.ContainsFunc(p, func(l jsonLeg) bool {
		return l.kind != legKey && (l.kind != legCells || l.isRange)
	})
}

// find returns the values in a document that a path leads to.
func (p jsonPath) find(doc any) []any {
	if len(p) == 0 {
		return []any{doc}
	}
	var found []any
	for _, v := range p[0].find(doc) {
		found = append(found, p[1:].find(v)...)
	}
	return found
}

// find returns the values that one step from a value leads to.
func (l jsonLeg) find(v any) []any {
	object, isObject := v.(map[string]any)
	array, isArray := v.([]any)
	switch l.kind {
	case legKey:
		if member, ok := object[l.key]; ok {
			return []any{member}
		}
		return nil
	case legKeys:
		return members(object)
	case legAll:
		return array
	case legCells:
		if !isArray {
			array = []any{v} // a value counts as an array of itself
		}
		from, to := max(0, l.from.index(len(array))), min(l.to.index(len(array)), len(array)-1)
		if from > to || (!l.isRange && from != l.from.index(len(array))) {
			return nil // the range is empty, or the index is outside of the array
		}
		return array[from : to+1]
	}
	// The step is **: it leads to the value, and to all values below.
	found := []any{v}
	below := array
	if isObject {
		below = members(object)
	}
	for _, b := range below {
		found = append(found, l.find(b)...)
	}
	return found
}

// members returns the values of an object in MySQL's order of keys: by length first.
func members(object map[string]any) []any {
	keys := slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	all := make([]any, len(keys))
	for i, k := range keys {
		all[i] = object[k]
	}
	return all
}
