package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitter(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"one", "select 1;", []string{"select 1"}},
		{"several on a line", "select 1; select 2 ;;", []string{"select 1", "select 2"}},
		{"over lines", "select\n 1\n;", []string{"select\n 1"}},
		{"no terminator at the end", "select 1", []string{"select 1"}},
		{"quotes", `select ';', ";", ` + "`;`" + `; select 2;`, []string{`select ';', ";", ` + "`;`", "select 2"}},
		{"doubled quote", `select 'it''s;'; x;`, []string{`select 'it''s;'`, "x"}},
		{"escaped quote", `select 'it\'s;'; x;`, []string{`select 'it\'s;'`, "x"}},
		{"no escape in backticks", "select `a\\`; x;", []string{"select `a\\`", "x"}},
		{"quote over lines", "select 'a;\nb;';", []string{"select 'a;\nb;'"}},
		{"comments", "select 1 -- no; end\n + 1 # nor; here\n;", []string{"select 1 \n + 1"}},
		{"block comment", "select /* a;\n b; */ 1;", []string{"select /* a;\n b; */ 1"}},
		{"minus minus is no comment", "select 1--1;", []string{"select 1--1"}},
		{"only a comment", "-- nothing;\n", nil},
		{"vertical", `select 1\G`, []string{"select 1|G"}},
		{"delimiter", "delimiter //\ncreate x begin a; b; end//\nDELIMITER ;\nselect 1;", []string{"create x begin a; b; end", "select 1"}},
	} {
		s := newSplitter()
		var got []string
		collect := func(cs []command) {
			for _, c := range cs {
				if c.vertical {
					c.text += "|G"
				}
				got = append(got, c.text)
			}
		}
		for line := range strings.SplitSeq(tc.in, "\n") {
			collect(s.add(line))
		}
		collect(s.flush())
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestSplitterNumbersLines(t *testing.T) {
	s := newSplitter()
	var got []int
	for _, line := range []string{"", "a;", "b", "c; d;", "", "e", "f;"} {
		for _, c := range s.add(line) {
			got = append(got, c.line)
		}
	}
	if want := []int{2, 3, 4, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// With any input, only delimiters and comments get lost, and the splitter ends in its initial
// state.
func FuzzSplitter(f *testing.F) {
	f.Add("select 'a;b'; -- c\n`x`\\G")
	f.Add("delimiter $$\na;b$$")
	f.Fuzz(func(t *testing.T, in string) {
		s := newSplitter()
		total := 0
		for line := range strings.SplitSeq(in, "\n") {
			for _, c := range s.add(line) {
				total += len(c.text)
			}
		}
		for _, c := range s.flush() {
			total += len(c.text)
		}
		if s.pending() || total > len(in)+1 {
			t.Fatalf("pending %v, %d bytes out of %d", s.pending(), total, len(in))
		}
	})
}
