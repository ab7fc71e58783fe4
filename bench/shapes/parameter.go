package shapes

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A parameter is drawn for each execution:
//
//	NAME int LOW HIGH                 a whole number, both bounds included
//	NAME next FIRST [step N]          FIRST, FIRST+N, ...: never the same again in a run
//	NAME plus OTHER N                 N more than the number of a parameter above
//	NAME list N of int LOW HIGH       N different numbers
//	NAME one of A|B|C                 one of these, numbers if all are numbers
//	NAME text FORMAT of NUMBER        user%d@example.com, with a NUMBER drawn by int, next or plus
//	NAME money|day|moment|uuid|hash of NUMBER
//
// Bounds are whole numbers or contain the number of rows of the largest tables, such as rows/10-9 or 300*rows.
type parameter struct {
	name  string
	base  string // the parameter that plus adds to, or ""
	items int    // number of values; 1 except for lists
	// isNumber is set if the value follows from a single number, to which plus can add.
	isNumber bool
	draw     func(*source, draw) value
}

// A value is the value of a parameter: the number that was drawn, and the items that are sent.
type value struct {
	number int64
	items  []any
}

// A draw has the values of all parameters of a shape, by name.
type draw map[string]value

// A source draws parameters.
type source struct {
	random *rand.Rand
	// next has the next value of each parameter that never repeats, by the parameter's key (parseNext).
	next map[*byte]int64
}

func newSource(seed uint64) *source {
	return &source{rand.New(rand.NewPCG(seed, 0)), make(map[*byte]int64)}
}

// fork returns a source with random numbers of its own. Parameters that never repeat continue as in s.
func (s *source) fork(seed uint64) *source {
	f := newSource(seed)
	maps.Copy(f.next, s.next)
	return f
}

// skip moves s beyond the values of never repeating parameters that another source has used.
func (s *source) skip(used *source) {
	for key, n := range used.next {
		s.next[key] = max(s.next[key], n)
	}
}

// draw draws the parameters for one execution of a shape.
func (s *source) draw(shape *Shape) []draw {
	ds := make([]draw, shape.repetitions())
	for i := range ds {
		ds[i] = make(draw)
		for _, q := range shape.parameters {
			ds[i][q.name] = q.draw(s, ds[i])
		}
	}
	return ds
}

// A number draws a whole number.
type number func(*source, draw) int64

var boundPattern = regexp.MustCompile(`^(?:(?:(\d+)\*)?(rows)(?:/(\d+))?([+-]\d+)?|(\d+))$`)

// parseBound returns the value of a bound, such as rows/10-9.
func parseBound(text string, rows int64) (int64, error) {
	m := boundPattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("the bound %q is neither a number nor like rows/10-9", text)
	}
	integer := func(text, otherwise string) int64 {
		n, _ := strconv.ParseInt(cmp.Or(text, otherwise), 10, 64) // digits by the pattern
		return n
	}
	if m[2] == "" {
		return integer(m[5], ""), nil
	}
	divisor := integer(m[3], "1")
	if divisor == 0 {
		return 0, fmt.Errorf("the bound %q divides by 0", text)
	}
	return integer(m[1], "1")*rows/divisor + integer(m[4], "0"), nil
}

// parseNumber parses the description of a number. It also returns the parameter that
// the number adds to, or "".
func parseNumber(fields []string, rows int64) (n number, base string, err error) {
	what := strings.Join(fields, " ")
	switch {
	case len(fields) == 3 && fields[0] == "int":
		low, err1 := parseBound(fields[1], rows)
		high, err2 := parseBound(fields[2], rows)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, "", err
		}
		if low > high {
			return nil, "", fmt.Errorf("%s of %d rows: %d is more than %d", what, rows, low, high)
		}
		return func(s *source, _ draw) int64 { return low + s.random.Int64N(high-low+1) }, "", nil
	case len(fields) == 3 && fields[0] == "plus":
		more, err := parseBound(fields[2], rows)
		base := fields[1]
		return func(_ *source, d draw) int64 { return d[base].number + more }, base, err
	case len(fields) == 2 && fields[0] == "next":
		n, err := parseNext(fields[1], "1")
		return n, "", err
	case len(fields) == 4 && fields[0] == "next" && fields[2] == "step":
		n, err := parseNext(fields[1], fields[3])
		return n, "", err
	}
	return nil, "", fmt.Errorf("%q draws no number; it is int LOW HIGH, next FIRST [step N] or plus NAME N", what)
}

// parseNext returns a number that is first when it is first drawn from a source, and then grows by step.
func parseNext(firstText, stepText string) (number, error) {
	first, err1 := strconv.ParseInt(firstText, 10, 64)
	step, err2 := strconv.ParseInt(stepText, 10, 64)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	key := new(byte) // its address stands for the parameter
	return func(s *source, _ draw) int64 {
		n, ok := s.next[key]
		if !ok {
			n = first
		}
		s.next[key] = n + step
		return n
	}, nil
}

// parseParameter parses a parameter.
func parseParameter(text string, rows int64) (q parameter, err error) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return q, fmt.Errorf(":%s: it is :NAME DRAW", text)
	}
	q.name, q.items = fields[0], 1
	switch kind, rest := fields[1], fields[2:]; {
	case kind == "list" && len(rest) == 5:
		err = q.parseList(rest, rows)
	case kind == "one" && rest[0] == "of" && len(rest) == 2:
		q.oneOf(strings.Split(rest[1], "|"))
	case kind == "int" || kind == "next" || kind == "plus":
		err = q.convert(fields[1:], rows, func(n int64) any { return n })
	default:
		err = q.parseConverted(kind, text, rows)
	}
	if err != nil {
		return q, fmt.Errorf(":%s: %w", q.name, err)
	}
	return q, nil
}

// convert makes q a parameter whose value is a converted number. fields describe the number.
func (q *parameter) convert(fields []string, rows int64, convert func(int64) any) error {
	n, base, err := parseNumber(fields, rows)
	q.base, q.isNumber = base, true
	q.draw = func(s *source, d draw) value {
		v := n(s, d)
		return value{v, []any{convert(v)}}
	}
	return err
}

// parseConverted parses KIND ... of NUMBER.
func (q *parameter) parseConverted(kind, text string, rows int64) error {
	before, after, ok := strings.Cut(text, " of ")
	convert := conversions[kind]
	if kind == "text" {
		_, format, _ := strings.Cut(before, " text ")
		convert = func(n int64) any { return fmt.Sprintf(format, n) }
	}
	if !ok || convert == nil {
		return fmt.Errorf("%q is no draw", text)
	}
	return q.convert(strings.Fields(after), rows, convert)
}

// conversions turn a number into a value, as the rows of the tables do (data.go).
var conversions = map[string]func(int64) any{
	"money": func(n int64) any { return money(n) }, "day": func(n int64) any { return day(n) }, "moment": func(n int64) any { return moment(n) },
	"uuid": func(n int64) any { return uuid(n) }, "hash": func(n int64) any { return hashOf(n) },
}

// parseList parses N of int LOW HIGH.
func (q *parameter) parseList(fields []string, rows int64) error {
	n, err := strconv.Atoi(fields[0])
	if err != nil || n < 1 || fields[1] != "of" || fields[2] != "int" {
		return fmt.Errorf("%q is not N of int LOW HIGH", strings.Join(fields, " "))
	}
	one, _, err := parseNumber(fields[2:], rows)
	if err != nil {
		return err
	}
	low, _ := parseBound(fields[3], rows) // no error: parseNumber has checked them
	high, _ := parseBound(fields[4], rows)
	if high-low+1 < int64(n) {
		return fmt.Errorf("there are not %d numbers from %d to %d", n, low, high)
	}
	q.items = n
	q.draw = func(s *source, d draw) value {
		seen, items := make(map[int64]bool), make([]any, 0, n)
		for len(items) < n {
			if v := one(s, d); !seen[v] {
				seen[v] = true
				items = append(items, v)
			}
		}
		return value{items: items}
	}
	return nil
}

// oneOf makes q a parameter whose value is one of words; the values are numbers if all words are.
func (q *parameter) oneOf(words []string) {
	values := make([]any, len(words))
	areNumbers := true
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		areNumbers = areNumbers && err == nil
		values[i] = n
	}
	if !areNumbers {
		for i, word := range words {
			values[i] = word
		}
	}
	q.draw = func(s *source, _ draw) value { return value{items: []any{values[s.random.IntN(len(values))]}} }
}

// epoch is the first moment in the data.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func money(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }

func day(n int64) string { return epoch.AddDate(0, 0, int(n)).Format(time.DateOnly) }

func moment(seconds int64) string {
	return epoch.Add(time.Duration(seconds) * time.Second).Format(time.DateTime)
}

func hashOf(n int64) []byte {
	b := binary.BigEndian.AppendUint64(nil, mix(uint64(n)))
	return binary.BigEndian.AppendUint64(b, uint64(n))
}

func uuid(n int64) string {
	h := hex.EncodeToString(hashOf(n))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// mix returns a number that looks random (the finalizer of SplitMix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9
	n = (n ^ (n >> 27)) * 0x94d049bb133111eb
	return n ^ (n >> 31)
}
