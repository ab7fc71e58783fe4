package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
)

// An Excerpt is a piece of the module's code to be judged by a reader.
type Excerpt struct {
	File string // path from the root of the repository
	Line int
	Text string // a function with its comment, or a comment with the line of code after it
}

func (e Excerpt) String() string { return fmt.Sprintf("%s:%d\n%s\n", e.File, e.Line, e.Text) }

// Draw returns n functions and n comments of the code below the root of fsys, without tests. It
// draws each with the same probability, and returns fewer than n if there are not so many. The same
// seed draws the same from the same code. Only folders that begin with one of prefixes count;
// without prefixes, all folders do.
func Draw(fsys fs.FS, seed uint64, n int, prefixes ...string) (functions, comments []Excerpt, err error) {
	packages, err := load(fsys)
	if err != nil {
		return nil, nil, err
	}
	for dir, files := range packages {
		if !hasPrefix(dir, prefixes) {
			continue
		}
		for _, f := range files {
			if f.isTest || ast.IsGenerated(f.ast) {
				continue
			}
			source, err := fs.ReadFile(fsys, f.name)
			if err != nil {
				return nil, nil, fmt.Errorf("lint: %w", err)
			}
			functions = append(functions, functionsOf(f, string(source))...)
			comments = append(comments, commentsOf(f, string(source))...)
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	return pick(functions, n, random), pick(comments, n, random), nil
}

func hasPrefix(dir string, prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(dir, p) })
}

// pick draws n of all without replacement. It sorts first, because packages are kept in a
// map.
func pick(all []Excerpt, n int, random *rand.Rand) []Excerpt {
	slices.SortFunc(all, func(a, b Excerpt) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func functionsOf(f *file, source string) []Excerpt {
	var functions []Excerpt
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		start := fn.Pos()
		if fn.Doc != nil {
			start = fn.Doc.Pos()
		}
		functions = append(functions, Excerpt{f.name, f.line(start), source[f.offset(start):f.offset(fn.End())]})
	}
	return functions
}

// commentsOf leaves out comments that only the compiler reads.
func commentsOf(f *file, source string) []Excerpt {
	var comments []Excerpt
	for _, group := range f.ast.Comments {
		if strings.TrimSpace(group.Text()) != "" {
			comments = append(comments, Excerpt{f.name, f.line(group.Pos()), withCode(source, f.offset(group.Pos()), f.offset(group.End()))})
		}
	}
	return comments
}

// withCode returns the whole lines of the comment and the line after them. A comment on lines of its
// own is about the line after it.
func withCode(source string, start, end int) string {
	start = strings.LastIndexByte(source[:start], '\n') + 1
	for range 2 {
		line := strings.IndexByte(source[end:], '\n')
		if line < 0 {
			return source[start:]
		}
		end += line + 1
	}
	return source[start : end-1]
}

// offset returns where in its file a node is, in bytes.
func (f *file) offset(pos token.Pos) int { return f.fset.Position(pos).Offset }
