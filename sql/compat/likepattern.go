package compat

import (
	"strings"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A likePattern is a LIKE's pattern rewritten to escape with backslashes. A final backslash is
// doubled. go-mysql-server fails for a pattern that ends in a backslash, and for an empty ESCAPE,
// which MySQL takes for a backslash.
type likePattern struct {
	expression.UnaryExpressionStub
	escape gms.Expression
}

var _ gms.Expression = (*likePattern)(nil)

// withPlainPattern returns a LIKE with a likePattern for its pattern; nil if it needs no change.
func withPlainPattern(l *expression.Like) *expression.Like {
	if _, done := l.RightChild.(*likePattern); done {
		return nil
	}
	if literal, ok := l.RightChild.(*expression.Literal); ok && l.Escape == nil {
		if s, ok := literal.Value().(string); ok && escapedBy(s, '\\') == s {
			return nil
		}
	}
	pattern := &likePattern{expression.UnaryExpressionStub{Child: l.RightChild}, l.Escape}
	return expression.NewLike(l.LeftChild, pattern, nil).(*expression.Like)
}

// Type implements gms.Expression.
func (p *likePattern) Type(ctx *gms.Context) gms.Type { return p.Child.Type(ctx) }

// String implements gms.Expression.
func (p *likePattern) String() string {
	if p.escape == nil {
		return p.Child.String()
	}
	return p.Child.String() + " ESCAPE " + p.escape.String()
}

// CollationCoercibility implements gms.CollationCoercible.
func (p *likePattern) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, p.Child)
}

// Eval implements gms.Expression.
func (p *likePattern) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	pattern, err := evalText(ctx, p.Child, row)
	if err != nil || pattern == nil {
		return nil, err
	}
	escape := '\\' // the default, also for an ESCAPE that is empty or NULL
	if p.escape != nil {
		text, err := evalText(ctx, p.escape, row)
		switch {
		case err != nil:
			return nil, err
		case text == nil:
		case utf8.RuneCountInString(*text) > 1:
			return nil, gms.ErrInvalidArgument.New("ESCAPE")
		case *text != "":
			escape, _ = utf8.DecodeRuneInString(*text)
		}
	}
	return escapedBy(*pattern, escape), nil
}

// evalText evaluates an expression as text; nil if it is NULL.
func evalText(ctx *gms.Context, e gms.Expression, row gms.Row) (*string, error) {
	v, err := e.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return nil, err
	}
	s, ok := v.(string)
	if !ok {
		if s, _, err = types.ConvertToCollatedString(ctx, v, e.Type(ctx)); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// NewLikeMatcher returns a matcher of texts of a collation with a pattern. Backslashes in the pattern escape wildcards.
func NewLikeMatcher(c gms.CollationID, pattern string) (expression.LikeMatcher, error) {
	return expression.ConstructLikeMatcher(c, escapedBy(pattern, '\\'), '\\')
}

// escapedBy rewrites a pattern, whose escape character is escape, to escape with backslashes. The
// pattern may not be valid UTF-8.
func escapedBy(pattern string, escape rune) string {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		text := pattern[i : i+n]
		i += n
		switch {
		case r == escape && i < len(pattern):
			_, n = utf8.DecodeRuneInString(pattern[i:])
			text = pattern[i : i+n]
			i += n
			b.WriteByte('\\')
		case r == '\\', r == escape:
			b.WriteByte('\\') // the character stands for itself
		}
		b.WriteString(text)
	}
	return b.String()
}

// WithChildren implements gms.Expression.
func (p *likePattern) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(p, len(children), 1)
	}
	return &likePattern{expression.UnaryExpressionStub{Child: children[0]}, p.escape}, nil
}
