package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function/json"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// JSON_EXTRACT and related functions use MySQL's paths (jsonpath.go); go-mysql-server's paths
// differ.

// A pathExtract is JSON_EXTRACT, -> or ->> with paths as MySQL reads them.
type pathExtract struct{ *json.JSONExtract }

// A pathTest is JSON_CONTAINS_PATH with paths as MySQL reads them.
type pathTest struct{ *json.JSONContainsPath }

// A pathScalar is JSON_VALUE with paths as MySQL reads them. Unless it returns JSON, it is NULL for an
// array or an object, and returns a string without its quotes.
type pathScalar struct{ *json.JsonValue }

var (
	_ gms.FunctionExpression = (*pathExtract)(nil)
	_ gms.FunctionExpression = (*pathScalar)(nil)
	_ gms.FunctionExpression = (*pathTest)(nil)
)

// byPath returns our replacement of a JSON function of go-mysql-server's that takes a path; nil for
// other expressions.
func byPath(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	switch e := e.(type) {
	case *json.JSONExtract:
		return &pathExtract{e}, nil
	case *json.JSONContainsPath:
		return &pathTest{e}, nil
	case *json.JsonValue:
		return &pathScalar{e}, nil
	case *json.JSONContains:
		if needsExtract(e.JSONTarget, e.Path) {
			return json.NewJSONContains(ctx, extractOf(e.JSONTarget, e.Path), e.JSONCandidate)
		}
	case *json.JsonLength:
		if needsExtract(e.JSON, e.Path) {
			return json.NewJsonLength(ctx, extractOf(e.JSON, e.Path))
		}
	case *json.JSONKeys:
		if needsExtract(e.JSON, e.Path) {
			return json.NewJSONKeys(ctx, extractOf(e.JSON, e.Path))
		}
	}
	return nil, nil
}

// needsExtract reports whether a function still has to extract its path from the document.
// go-mysql-server adds the path $ where there is none.
func needsExtract(doc, path gms.Expression) bool {
	_, isGone := doc.(*pathExtract)
	return path != nil && !isGone
}

func extractOf(doc, path gms.Expression) *pathExtract {
	return &pathExtract{&json.JSONExtract{JSON: doc, Paths: []gms.Expression{path}}}
}

// found is the result of applying paths to a document.
type found struct {
	byPath [][]any // for each path, the values that it leads to
	isOne  bool    // there is one path, which leads to at most one value
	isNull bool    // the document, or a path, is NULL
	known  bool    // the result was computed here; if false, go-mysql-server evaluates the call and reports its error
}

// findPaths evaluates the document and the paths, and finds the values that the paths lead to.
func findPaths(ctx *gms.Context, row gms.Row, doc gms.Expression, paths []gms.Expression) (f found, err error) {
	v, err := doc.Eval(ctx, row)
	if err != nil {
		return f, err
	}
	if v == nil {
		return found{isNull: true, known: true}, nil
	}
	if of := doc.Type(ctx); !types.IsJSON(of) && !types.IsText(of) {
		return f, nil
	}
	wrapper, _, err := types.JSON.Convert(ctx, v)
	if err != nil {
		return f, nil
	}
	document, ok := wrapper.(gms.JSONWrapper)
	if !ok {
		return f, nil
	}
	value, err := document.ToInterface(ctx)
	if err != nil {
		return f, err
	}
	for _, p := range paths {
		text, err := p.Eval(ctx, row)
		if err != nil {
			return f, err
		}
		if text == nil {
			return found{isNull: true, known: true}, nil
		}
		s, ok := text.(string)
		path, isPath := parsePath(s)
		if !ok || !isPath {
			return f, nil
		}
		f.byPath = append(f.byPath, path.find(value))
		f.isOne = len(paths) == 1 && path.isOne()
	}
	f.known = true
	return f, nil
}

// Eval implements gms.Expression.
func (p *pathExtract) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	f, err := findPaths(ctx, row, p.JSON, p.Paths)
	switch {
	case err != nil:
		return nil, err
	case !f.known:
		return p.JSONExtract.Eval(ctx, row)
	case f.isNull:
		return nil, nil
	}
	var all []any
	for _, values := range f.byPath {
		all = append(all, values...)
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case f.isOne:
		return types.JSONDocument{Val: all[0]}, nil
	}
	return types.JSONDocument{Val: all}, nil
}

// WithChildren implements gms.Expression.
func (p *pathExtract) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := p.JSONExtract.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &pathExtract{e.(*json.JSONExtract)}, nil
}

// Eval implements gms.Expression.
func (p *pathTest) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	args := p.Children()
	f, err := findPaths(ctx, row, args[0], args[2:])
	if err != nil {
		return nil, err
	}
	how, err := args[1].Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	word, _ := how.(string)
	isAll := strings.EqualFold(word, "all")
	switch {
	case !f.known || (!isAll && !strings.EqualFold(word, "one")):
		return p.JSONContainsPath.Eval(ctx, row)
	case f.isNull:
		return nil, nil
	}
	for _, values := range f.byPath {
		if isFound := len(values) > 0; isFound != isAll { // a missing path decides "all", an existing one decides "one"
			return isFound, nil
		}
	}
	return isAll, nil
}

// WithChildren implements gms.Expression.
func (p *pathTest) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := p.JSONContainsPath.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &pathTest{e.(*json.JSONContainsPath)}, nil
}

// Eval implements gms.Expression.
func (p *pathScalar) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	f, err := findPaths(ctx, row, p.JSON, []gms.Expression{p.Path})
	switch {
	case err != nil:
		return nil, err
	case !f.known:
		return p.JsonValue.Eval(ctx, row)
	case f.isNull || len(f.byPath[0]) != 1:
		return nil, nil
	}
	value := f.byPath[0][0]
	_, isArray := value.([]any)
	_, isObject := value.(map[string]any)
	text, isText := value.(string)
	switch {
	case value == nil, (isArray || isObject) && !types.IsJSON(p.Typ):
		return nil, nil
	case isText && !types.IsJSON(p.Typ):
		out, _, err := p.Typ.Convert(ctx, text)
		return out, err
	}
	out, _, err := p.Typ.Convert(ctx, types.JSONDocument{Val: value})
	return out, err
}

// WithChildren implements gms.Expression.
func (p *pathScalar) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := p.JsonValue.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &pathScalar{e.(*json.JsonValue)}, nil
}
