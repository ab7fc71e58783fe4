package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Generated text is between two markers, each a line of its own.
const (
	markerBegin = "<!-- farmsql bench report: "
	markerEnd   = "<!-- end -->\n"
)

var (
	generated = regexp.MustCompile(`(?ms)^` + markerBegin + `(\S+) -->\n(.*?)^` + markerEnd)
	begun     = regexp.MustCompile(`(?m)^` + markerBegin)
)

// ErrDocument means that a document's markers are missing or wrong.
var ErrDocument = errors.New("report: the markers of the document are wrong")

// Write writes the results of the folder into the document, and plots into a folder beside
// the document with the document's name without its extension.
func Write(o Options, document string) error {
	if err := o.validate(); err != nil {
		return err
	}
	r, err := readResults(&o)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(document)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	plots := strings.TrimSuffix(document, filepath.Ext(document))
	if err := os.MkdirAll(plots, 0o777); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	text, err := r.fill(string(old), plots)
	if err != nil {
		return err
	}
	if err := os.WriteFile(document, []byte(text), 0o666); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// fill replaces the text between markers. A section without any result keeps its text, unless that is
// empty.
func (r *results) fill(text, plots string) (string, error) {
	if err := checkMarkers(text); err != nil {
		return "", err
	}
	var errs []error
	text = generated.ReplaceAllStringFunc(text, func(old string) string {
		parts := generated.FindStringSubmatch(old)
		name, content := parts[1], parts[2]
		s := sections[slices.IndexFunc(sections, func(s section) bool { return s.name == name })]
		if !r.hasAny(s.experiments) && strings.TrimSpace(content) != "" {
			return old
		}
		p := &page{results: r, plots: plots}
		p.begin(s)
		if err := s.write(p); err != nil {
			errs = append(errs, err)
		}
		return markerBegin + name + " -->\n" + p.text.String() + markerEnd
	})
	return text, errors.Join(errs...)
}

// checkMarkers requires each section once, with both of its markers.
func checkMarkers(text string) error {
	var found []string
	for _, m := range generated.FindAllStringSubmatch(text, -1) {
		if begun.MatchString(m[2]) {
			return fmt.Errorf("%w: %s has no end", ErrDocument, m[1])
		}
		found = append(found, m[1])
	}
	if n := len(begun.FindAllString(text, -1)); n != len(found) {
		return fmt.Errorf("%w: %d begin and %d have an end", ErrDocument, n, len(found))
	}
	var want []string
	for _, s := range sections {
		want = append(want, s.name)
	}
	slices.Sort(want)
	if slices.Sort(found); !slices.Equal(found, want) {
		return fmt.Errorf("%w: there are %s, and must be %s, each once", ErrDocument, strings.Join(found, ", "), strings.Join(want, ", "))
	}
	return nil
}

// hasAny reports whether one of the experiments has a result.
func (r *results) hasAny(es []experiment) bool {
	return slices.ContainsFunc(es, func(e experiment) bool { return len(r.runs[e.name]) > 0 })
}

// A page is a section that is being written.
type page struct {
	*results
	text strings.Builder
	// plots is the folder of the plots.
	plots string
}

// begin writes the warning of a quick run, and the conditions under which the section's figures
// were measured.
func (p *page) begin(s section) {
	p.line("")
	if p.o.Quick {
		p.line("**Of a quick run, which is to see that everything works: the figures mean nothing.**")
		p.line("")
	}
	p.line("%s", p.conditions(s.experiments))
	p.line("")
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// table writes a table whose first column is text, and the others figures.
func (p *page) table(header []string, rows [][]string) {
	p.line("| %s |", strings.Join(header, " | "))
	p.line("|---%s|", strings.Repeat("|---:", len(header)-1))
	for _, row := range rows {
		p.line("| %s |", strings.Join(row, " | "))
	}
	p.line("")
}

// plot calls draw to write a plot's SVG and PNG to a base name, and shows the SVG.
func (p *page) plot(name, text string, draw func(base string) error) error {
	if err := draw(filepath.Join(p.plots, name)); err != nil {
		return err
	}
	p.line("![%s](%s/%s.svg)", text, filepath.Base(p.plots), name)
	p.line("")
	return nil
}
