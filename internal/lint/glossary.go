package lint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"slices"
	"strings"
	"unicode"
)

// glossaryFile has the words of the module, and which of them exported names may have.
const glossaryFile = "docs/glossary.md"

// A glossary has the parsed tables of glossaryFile.
type glossary struct {
	// defined are the words with a meaning.
	defined map[string]bool
	// forbidden maps words that no exported name has to the words to write instead.
	forbidden map[string]string
	// homes are words that exported names have only in some packages.
	homes []home
}

type home struct {
	word     string
	packages []string // as for matches
	line     int
}

// readGlossary parses the tables, which it recognizes by their headers. Without the file it returns
// nil, and no names are checked.
func readGlossary(fsys fs.FS) (*glossary, error) {
	text, err := fs.ReadFile(fsys, glossaryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	g := &glossary{defined: make(map[string]bool), forbidden: make(map[string]string)}
	table := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for line := 1; lines.Scan(); line++ {
		left, right, isRow := row(lines.Text())
		switch {
		case !isRow:
			table = ""
		case table == "":
			table = left + ", " + right
		case strings.Trim(left, "-:") != "": // not the line under the header
			if err := g.add(table, left, right, line); err != nil {
				return nil, err
			}
		}
	}
	return g, lines.Err()
}

// row returns the two cells of a line of a table.
func row(line string) (left, right string, ok bool) {
	cells := strings.Split(line, "|")
	if len(cells) < 4 {
		return "", "", false
	}
	return strings.TrimSpace(cells[1]), strings.TrimSpace(strings.Join(cells[2:len(cells)-1], "|")), true
}

// add takes a row of a table. The header of the table says what the row means.
func (g *glossary) add(table, left, right string, line int) error {
	switch table {
	case "word, meaning":
		for _, w := range wordsOf(left) {
			g.defined[w] = true
		}
	case "not, but":
		for _, w := range wordsOf(left) {
			g.forbidden[w] = right
		}
	case "word, packages":
		h := home{word: left, line: line}
		for _, p := range strings.Split(right, ",") {
			h.packages = append(h.packages, strings.Trim(strings.TrimSpace(p), "`"))
		}
		g.homes = append(g.homes, h)
	default:
		return fmt.Errorf("lint: %s:%d: a table with the columns %s", glossaryFile, line, table)
	}
	return nil
}

// wordsOf returns the words of a cell, in small letters.
func wordsOf(cell string) []string {
	return strings.FieldsFunc(strings.ToLower(cell), func(r rune) bool { return !unicode.IsLetter(r) })
}

// check returns the exported names that violate the glossary. It also returns words of the last
// table that have no definition, or that no package uses.
func (g *glossary) check(packages map[string][]*file) (problems []Problem) {
	used := make(map[string]bool)
	for dir, files := range packages {
		eachExported(files, func(f *file, name *ast.Ident) {
			report := func(format string, args ...any) {
				problems = append(problems, Problem{f.name, f.line(name.Pos()), "glossary", fmt.Sprintf(format, args...)})
			}
			for _, w := range splitName(name.Name) {
				if but, isForbidden := g.forbidden[w]; isForbidden {
					report("the name %s has the word %s; not this, but: %s", name.Name, w, but)
				}
				for _, h := range g.homes {
					isForm := strings.HasPrefix(w, h.word) && len(w) <= len(h.word)+2 // the word, its plural or participle
					switch {
					case !isForm:
					case matches(dir, h.packages):
						used[h.word] = true
					default:
						report("the name %s has the word %s, whose meaning belongs to %s", name.Name, h.word, strings.Join(h.packages, ", "))
					}
				}
			}
		})
	}
	for _, h := range g.homes {
		if !g.defined[h.word] {
			problems = append(problems, Problem{glossaryFile, h.line, "glossary", h.word + " has packages and no meaning"})
		}
		if !used[h.word] {
			problems = append(problems, Problem{glossaryFile, h.line, "glossary", "no exported name has the word " + h.word})
		}
	}
	return problems
}

// eachExported visits the exported names of declarations, methods and fields of a package.
func eachExported(files []*file, visit func(f *file, name *ast.Ident)) {
	for _, f := range files {
		if f.isTest {
			continue
		}
		each := func(names ...*ast.Ident) {
			for _, name := range names {
				if name.IsExported() {
					visit(f, name)
				}
			}
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				each(fn.Name)
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					each(n.Name)
				case *ast.ValueSpec:
					each(n.Names...)
				case *ast.Field:
					each(n.Names...)
				}
				return true
			})
		}
	}
}

// splitName returns the words of a name in small letters: ErrLostUpdate is err, lost and
// update, and RDMARead is rdma and read.
func splitName(name string) (words []string) {
	letters := []rune(name)
	begin := 0
	for i := 1; i <= len(letters); i++ {
		// A capital begins a word after a small letter, or before one, as the second R of RDMARead does.
		isEnd := i == len(letters) || (unicode.IsUpper(letters[i]) &&
			(!unicode.IsUpper(letters[i-1]) || (i+1 < len(letters) && unicode.IsLower(letters[i+1]))))
		if isEnd {
			words = append(words, strings.ToLower(string(letters[begin:i])))
			begin = i
		}
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "_" })
}
