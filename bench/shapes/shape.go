package shapes

import (
	_ "embed" // for shapes.txt
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed shapes.txt
var shapesText string

// A Shape is one or more statements that an application sends one after the other.
// Their parameters are drawn for each execution.
type Shape struct {
	Group, Name string

	parameters []parameter
	before     []statement // sent before each execution, not measured
	statements []statement
	compare    comparison
}

// A comparison says which parts of a shape's answers must be the same at both servers.
type comparison int

const (
	compareAll     comparison = iota // rows, in order if the statement has ORDER BY, and results of changes
	compareCounts                    // numbers of rows, because the choice of rows is not determined
	compareNothing                   // answers depend on the time or the server
)

// A statement is the text of a statement with placeholders, and the values for these.
type statement struct {
	text  string
	slots []slot
	// repetitions is how often the parameters are drawn for one execution: once for each row of
	// an INSERT.
	repetitions int
	// isQuery is set if the statement returns rows; isOrdered if it orders them.
	isQuery, isOrdered bool
	// isControl is set for statements that clients never prepare, such as COMMIT.
	isControl bool
}

// A slot is the value for a placeholder.
type slot struct {
	parameter  string
	item       int // index of the value, if the parameter is a list
	repetition int
}

// errSyntax is wrapped by all errors about the text of shapes.
var errSyntax = errors.New("bench/shapes: not a shape")

// parse parses shapes. rows is the number of rows of the largest tables.
func parse(text string, rows int64) (all []*Shape, err error) {
	p := parser{rows: rows, seen: make(map[string]bool)}
	for i, line := range joinLines(text) {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errSyntax, i+1, err)
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("%w: at the end: %w", errSyntax, err)
	}
	return p.all, nil
}

// joinLines splits a text into lines. It appends lines that begin with a tab to the line before,
// and leaves empty lines in their places, so that line numbers stay right.
func joinLines(text string) []string {
	lines := strings.Split(text, "\n")
	last := 0
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "\t"); ok && i > 0 {
			lines[last] += " " + strings.TrimSpace(rest)
			lines[i] = ""
			continue
		}
		lines[i], last = strings.TrimSpace(line), i
	}
	return lines
}

// A parser collects shapes line by line.
type parser struct {
	rows  int64
	group string
	seen  map[string]bool
	shape *Shape // the shape that has begun and not ended
	all   []*Shape
}

// line parses a line: the name of a group or of a shape, or something of the shape that was named last.
func (p *parser) line(line string) error {
	if group, ok := strings.CutPrefix(line, "== "); ok {
		p.group = group
		return p.end()
	}
	if name, ok := strings.CutPrefix(line, "-- "); ok {
		return p.begin(name)
	}
	if p.shape == nil {
		return fmt.Errorf("%q belongs to no shape (-- NAME)", line)
	}
	if rest, ok := strings.CutPrefix(line, ":"); ok {
		q, err := parseParameter(rest, p.rows)
		if err == nil {
			err = p.shape.checkBase(&q)
		}
		p.shape.parameters = append(p.shape.parameters, q)
		return err
	}
	if what, ok := strings.CutPrefix(line, "compare "); ok {
		return p.shape.setComparison(what)
	}
	if text, ok := strings.CutPrefix(line, "before "); ok {
		s, err := p.shape.parseStatement(text)
		p.shape.before = append(p.shape.before, s)
		return err
	}
	s, err := p.shape.parseStatement(line)
	p.shape.statements = append(p.shape.statements, s)
	return err
}

// begin begins a shape.
func (p *parser) begin(name string) error {
	if err := p.end(); err != nil {
		return err
	}
	switch key := p.group + "\n" + name; {
	case p.group == "":
		return fmt.Errorf("shape %q has no group (== NAME)", name)
	case p.seen[key]:
		return fmt.Errorf("group %q has two shapes %q", p.group, name)
	default:
		p.seen[key] = true
	}
	p.shape = &Shape{Group: p.group, Name: name}
	return nil
}

// end ends the shape that was begun.
func (p *parser) end() error {
	s := p.shape
	if s == nil {
		return nil
	}
	if len(s.statements) == 0 {
		return fmt.Errorf("shape %q has no statement", s.Name)
	}
	for _, q := range s.parameters {
		if !s.uses(q.name) {
			return fmt.Errorf("parameter %q of shape %q is not used", q.name, s.Name)
		}
	}
	p.all, p.shape = append(p.all, s), nil
	return nil
}

// uses reports whether a statement or another parameter uses a parameter.
func (s *Shape) uses(name string) bool {
	for _, st := range slices.Concat(s.before, s.statements) {
		if slices.ContainsFunc(st.slots, func(at slot) bool { return at.parameter == name }) {
			return true
		}
	}
	return slices.ContainsFunc(s.parameters, func(q parameter) bool { return q.base == name })
}

func (s *Shape) setComparison(what string) error {
	switch what {
	case "counts":
		s.compare = compareCounts
	case "nothing":
		s.compare = compareNothing
	default:
		return fmt.Errorf("compare %q; it is counts or nothing", what)
	}
	return nil
}

// checkBase requires that the parameter that q adds to is a number drawn before it.
func (s *Shape) checkBase(q *parameter) error {
	if q.base == "" {
		return nil
	}
	switch base := s.parameter(q.base); {
	case base == nil:
		return fmt.Errorf(":%s: there is no parameter %q above", q.name, q.base)
	case !base.isNumber:
		return fmt.Errorf(":%s: parameter %q is no number", q.name, q.base)
	}
	return nil
}

func (s *Shape) parameter(name string) *parameter {
	if i := slices.IndexFunc(s.parameters, func(q parameter) bool { return q.name == name }); i >= 0 {
		return &s.parameters[i]
	}
	return nil
}

// isPrepared reports whether clients prepare any statement of the shape.
func (s *Shape) isPrepared() bool {
	return slices.ContainsFunc(s.statements, func(st statement) bool { return !st.isControl })
}

// repetitions is how often the parameters are drawn for one execution.
func (s *Shape) repetitions() int {
	n := 1
	for _, st := range slices.Concat(s.before, s.statements) {
		n = max(n, st.repetitions)
	}
	return n
}

// Patterns: comments before a statement's first word, a row to repeat, and the parts of a text
// that contain parameters or never do.
var (
	commentPattern  = regexp.MustCompile(`^(?:/\*.*?\*/\s*)+`)
	repeatedPattern = regexp.MustCompile(`\{(\d+) \* ([^{}]*)\}`)
	partPattern     = regexp.MustCompile("'(?:[^'\\\\]|\\\\.|'')*'|`[^`]*`|/\\*.*?\\*/|:[a-z][a-z0-9]*|.")
)

// parseStatement parses a statement. `:name` is a parameter; {10 * (:a, :b)} stands for
// ten rows, each with its own values of a and b.
func (s *Shape) parseStatement(text string) (st statement, err error) {
	var b strings.Builder
	st.repetitions = 1
	for text != "" && err == nil {
		at := repeatedPattern.FindStringSubmatchIndex(text) // the bounds of {10 * ROW}, of the number, and of ROW
		if at == nil {
			err = s.expand(&b, &st, text, 0)
			break
		}
		err = s.expand(&b, &st, text[:at[0]], 0)
		n, bad := strconv.Atoi(text[at[2]:at[3]])
		if bad != nil || n < 1 {
			return st, fmt.Errorf("%s rows", text[at[2]:at[3]])
		}
		st.repetitions = max(st.repetitions, n)
		for i := 0; i < n && err == nil; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			err = s.expand(&b, &st, text[at[4]:at[5]], i)
		}
		text = text[at[1]:]
	}
	st.text = b.String()
	st.classify()
	return st, err
}

// expand writes a part of a statement with placeholders in place of parameters. repetition is the number
// of the repeated row, from 0.
func (s *Shape) expand(b *strings.Builder, st *statement, text string, repetition int) error {
	for _, part := range partPattern.FindAllString(text, -1) {
		if part[0] != ':' || len(part) == 1 {
			b.WriteString(part)
			continue
		}
		q := s.parameter(part[1:])
		if q == nil {
			return fmt.Errorf("%s has no draw above the statement", part)
		}
		for i := range q.items {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteByte('?')
			st.slots = append(st.slots, slot{q.name, i, repetition})
		}
	}
	return nil
}

// classify sets isQuery, isOrdered and isControl.
func (st *statement) classify() {
	text := strings.ToUpper(commentPattern.ReplaceAllString(st.text, ""))
	first, _, _ := strings.Cut(text, " ")
	switch first {
	case "BEGIN", "COMMIT", "ROLLBACK", "SET":
		st.isControl = true
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
	default:
		st.isQuery = true
		st.isOrdered = strings.Contains(text, "ORDER BY")
	}
}

// arguments returns the values of the placeholders.
func (st *statement) arguments(ds []draw) []any {
	args := make([]any, len(st.slots))
	for i, at := range st.slots {
		args[i] = ds[at.repetition][at.parameter].items[at.item]
	}
	return args
}
