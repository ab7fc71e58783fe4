package main

import "strings"

// A splitter cuts a stream of SQL lines into statements. It knows quotes, comments and DELIMITER,
// so a semicolon inside a quote or comment does not end a statement.
type splitter struct {
	delimiter string
	text      strings.Builder // text of the statement that is being collected
	quote     byte            // the quote (', " or `) that is open, or * in a comment
	line      int             // number of lines read so far
	start     int             // number of the line on which the statement began
}

// A command is one complete statement.
type command struct {
	text     string
	vertical bool // ended by \G: print one column per line
	line     int
}

func newSplitter() *splitter { return &splitter{delimiter: ";"} }

// pending reports whether a statement has begun and not ended.
func (s *splitter) pending() bool { return strings.TrimSpace(s.text.String()) != "" }

// reset drops the statement being collected.
func (s *splitter) reset() {
	s.text.Reset()
	s.quote = 0
}

// add takes the next line and returns the statements that it completes.
func (s *splitter) add(line string) []command {
	s.line++
	if !s.pending() && s.quote == 0 {
		if word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); strings.EqualFold(word, "delimiter") && strings.TrimSpace(rest) != "" {
			s.delimiter = strings.TrimSpace(rest)
			return nil
		}
		s.start = s.line
	}
	var done []command
	for i := 0; i < len(line); {
		if n, vertical := s.terminator(line[i:]); n > 0 {
			done = s.finish(done, vertical)
			i += n
			s.start = s.line
			continue
		}
		n := s.scan(line[i:])
		i += n
	}
	s.text.WriteByte('\n')
	return done
}

// flush returns the statement that the end of the input leaves unterminated.
func (s *splitter) flush() []command { return s.finish(nil, false) }

// finish appends the collected statement to done, unless it is empty, and begins the next one.
func (s *splitter) finish(done []command, vertical bool) []command {
	text := strings.TrimSpace(s.text.String())
	s.reset()
	if text == "" {
		return done
	}
	return append(done, command{text: text, vertical: vertical, line: s.start})
}

// terminator returns the length of the delimiter or \G that rest begins with.
func (s *splitter) terminator(rest string) (n int, vertical bool) {
	switch {
	case s.quote != 0:
		return 0, false
	case strings.HasPrefix(rest, s.delimiter):
		return len(s.delimiter), false
	case strings.HasPrefix(rest, `\G`):
		return 2, true
	}
	return 0, false
}

// scan consumes the next piece of a line, at least one byte of it.
func (s *splitter) scan(rest string) int {
	n := 1
	switch c := rest[0]; {
	case s.quote == '*':
		if strings.HasPrefix(rest, "*/") {
			s.quote, n = 0, 2
		}
	case s.quote != 0:
		switch {
		case c == '\\' && s.quote != '`' && len(rest) > 1:
			n = 2
		case c == s.quote:
			s.quote = 0 // the second of two quotes opens the string again at once
		}
	case c == '\'' || c == '"' || c == '`':
		s.quote = c
	case strings.HasPrefix(rest, "/*"):
		s.quote, n = '*', 2
	case c == '#', rest == "--", strings.HasPrefix(rest, "-- "), strings.HasPrefix(rest, "--\t"):
		return len(rest) // the rest of the line is a comment, which is not sent
	}
	s.text.WriteString(rest[:n])
	return n
}
