package shapes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// comparisons is how often a shape is executed at both servers to compare their answers.
const comparisons = 4

// compareShape executes a shape several times at both servers, each time with the same parameters
// at both. It notes differences and failures in row.
func (r *run) compareShape(ctx context.Context, row *Row) error {
	for range comparisons {
		ds := r.source.draw(row.shape)
		var answers [2][]string
		for i := range r.servers {
			var err error
			if answers[i], err = r.answerOf(ctx, row, i, ds); err != nil {
				return err
			}
		}
		if row.hasFailed() {
			return nil
		}
		if row.Difference = difference(row.shape, ds, answers, r.names()); row.Difference != "" {
			return nil
		}
	}
	return nil
}

// answerOf returns the answer of server i. If the shape fails, answerOf notes that in row. An error
// means that the server is gone.
func (r *run) answerOf(ctx context.Context, row *Row, i int, ds []draw) (answer []string, err error) {
	bounded, cancel := context.WithTimeoutCause(ctx, r.patience, errPatience(r.patience))
	defer cancel()
	s := r.sessions[i][row.Mode]
	if err = s.prepare(bounded, row.shape); err == nil {
		err = s.prelude(bounded, row.shape, ds)
	}
	if err == nil {
		answer, err = s.answer(bounded, row.shape, ds)
	}
	if err == nil {
		return answer, nil
	}
	return nil, r.fail(ctx, bounded, row, i, err)
}

// fail notes that a shape has failed at server i, and makes the session usable for the next shape. ctx
// is the run's context, bounded the one whose end makes the shape fail.
func (r *run) fail(ctx, bounded context.Context, row *Row, i int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if bounded.Err() != nil {
		err = context.Cause(bounded)
	}
	row.Figures[i].Error = err.Error()
	return r.sessions[i][row.Mode].renew(ctx)
}

func errPatience(d time.Duration) error {
	return fmt.Errorf("it had not ended after %v", d)
}

// difference describes the first difference between two servers' answers; empty if there is none.
func difference(shape *Shape, ds []draw, answers [2][]string, names [2]string) string {
	for i := range shape.statements {
		one, other := answers[0][i], answers[1][i]
		if one == other {
			continue
		}
		a, b := strings.Split(one, "\n"), strings.Split(other, "\n")
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		line := func(lines []string) string {
			if n == len(lines) {
				return "nothing"
			}
			return fmt.Sprintf("%.100q", lines[n])
		}
		return fmt.Sprintf("%.200s with %.80v: answer %d of %d (%s) and %d (%s): %s and %s", shape.statements[i].text, shape.statements[i].arguments(ds),
			n+1, len(a), names[0], len(b), names[1], line(a), line(b))
	}
	return ""
}

// compareTables compares all tables, and returns the names of those that differ.
func (r *run) compareTables(ctx context.Context) (differ []string, err error) {
	for _, t := range tables {
		var sums [2]string
		for i := range r.servers {
			if sums[i], err = r.sessions[i][r.modes[0]].sum(ctx, t); err != nil {
				return nil, err
			}
		}
		if sums[0] != sums[1] {
			differ = append(differ, t.name)
		}
	}
	return differ, nil
}

// sum returns a checksum of a table, and its number of rows.
func (s *session) sum(ctx context.Context, t table) (string, error) {
	rows, err := s.conn.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", t.columns, t.name, t.key))
	if err != nil {
		return "", fmt.Errorf("bench/shapes: %s: %s: %w", s.server.Name, t.name, err)
	}
	h := sha256.New()
	n := 0
	err = eachRow(rows, func(line string) {
		n++
		_, _ = h.Write([]byte(line + "\n")) // never fails
	})
	return fmt.Sprintf("%d rows, %x", n, h.Sum(nil)), err
}

// ErrDiffers means that the servers answer differently.
var ErrDiffers = errors.New("bench/shapes: the servers answer differently")

// Wrong returns an error that names all shapes that fail or whose answers differ, and nil if there are none.
func (res *Result) Wrong() error {
	var wrong []string
	for _, row := range res.Rows {
		if text := row.trouble(res.Servers); text != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s (%s): %s", row.Group, row.Shape, row.Mode, text))
		}
	}
	for _, name := range res.Tables {
		wrong = append(wrong, fmt.Sprintf("table %s has other rows", name))
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w, or a shape fails: %d:\n%s", ErrDiffers, len(wrong), strings.Join(slices.Compact(wrong), "\n"))
}
