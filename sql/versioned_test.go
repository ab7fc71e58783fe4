package sql

import (
	"context"
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
)

// A resolved text is written here without the spaces that stand for what is gone.
func TestResolveComments(t *testing.T) {
	const same = "the same"
	for _, tt := range []struct{ query, want string }{
		{"select /*! 1 + */ 2", "select 1 + 2"},
		{"select /*!80031 1 + */ 2", "select 1 + 2"},
		{"select /*!80031+1*/", "select +1"},
		{"select /*!80032 1 + */ 2", "select 2"},
		{"select /*!080031 1 + */ 2", "select 1 + 2"},
		{"select /*!100000 1 + */ 2", "select 2"},
		{"select /*!999999\n1 + */ 2", "select 2"},
		{"select /*!500321 + */ 2", "select 2"},
		{"select /*!500321+ */ 2", "select 1+ 2"},
		{"select /*!1234 + */ 2", "select 1234 + 2"},
		{"select /*!*/ 2", "select 2"},
		{"select /*M! 1 + */ 2", "select /* 1 + */ 2"},
		{`/*M!999999\- enable the sandbox mode */`, `/* 999999\- enable the sandbox mode */`},
		{"select /*!99999 a /* b */ c /* d */ e */ 2", "select 2"},
		{"select /*!50000 1 /* b */ + */ 2", "select 1 /* b */ + 2"},
		{"select /*!50000 1 /*!99999 + 3 */ + /*!50000 2 + */ */ 2", "select 1 + 2 + 2"},
		{"select /*!50000 '*/', */ 2", "select '*/', 2"},
		{"select 1 -- /*!99999 a\n + /*!99999 b */ 1", "select 1 -- /*!99999 a + 1"},
		{"select 1 # it's /*!99999\n + /*!99999 b */ 1", "select 1 # it's /*!99999 + 1"},
		{"/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`%`*/ /*!50003 TRIGGER t*/", "CREATE DEFINER=`root`@`%` TRIGGER t"},

		{"select 5--3, '--3' -- 4", "select 5+ 3, '--3' -- 4"}, {"select 5 --\n 4 --", same}, {"select 5----3", "select 5+ + 3"}, {"select 5 /*--3*/ #--4", same}, {"select 5 ---\n+1 ----", same},
		{"select /* /*!99999 */ 2", same},
		{"select '/*!99999 a */', \"/*!99999 b */\", `/*!99999 c */`", same},
		{`select 'it''s \' /*!99999 a */', "\" /*!99999 b */"`, same},
		{"select /*!50000 1", same},
		{"select /*!99999 1 /* 2 */", same},
		{"select 1 /*!50000 'a*/", same},
		{`select 1 /*!50000 'a\`, same},
		{"/*!", same}, {"/*!50000", same}, {"/*!/", same},
	} {
		got := compat.ResolveComments(tt.query, sqlparser.ParserOptions{})
		switch {
		case tt.want == same && got != tt.query,
			tt.want != same && strings.Join(strings.Fields(got), " ") != tt.want,
			len(got) != len(tt.query):
			t.Errorf("%q: got %q, want %q", tt.query, got, tt.want)
		}
	}
	const escaped = `select "a\" /*!99999 , "b" */ from t`
	if got := compat.ResolveComments(escaped, sqlparser.ParserOptions{AnsiQuotes: true}); strings.Contains(got, "b") {
		t.Errorf("ANSI_QUOTES: %q", got)
	}
}

// The parser returns the first statement's text with its versioned comments resolved, and the text of the
// rest.
func TestParseVersioned(t *testing.T) {
	_, text, rest, err := (parser{}).ParseWithOptions(context.Background(), "/*!50000 select 1 */; /*!99999 nonsense */ select 2", ';', true, sqlparser.ParserOptions{})
	if err != nil || text != "select 1" || strings.TrimSpace(rest) != "select 2" {
		t.Errorf("%q, then %q: %v", text, rest, err)
	}
	if _, err := (parser{}).ParseSimple(`/*M!999999\- enable the sandbox mode */`); err != sqlparser.ErrEmpty {
		t.Errorf("a comment alone: %v", err)
	}
	if _, err := (parser{}).ParseSimple("select /*!80031 ? + */ ? /*!99999 + ? */ || ?"); err != nil {
		t.Error(err)
	}
}
