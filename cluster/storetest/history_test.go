package storetest

import (
	"strings"
	"testing"
)

// The check finds what each of these histories has wrong, and nothing in those that are right.
func TestProblems(t *testing.T) {
	swap := func(writer, old, revision uint64, o outcome, begin, end int64) operation {
		return operation{isSwap: true, writer: writer, old: old, revision: revision, outcome: o, begin: begin, end: end}
	}
	load := func(writer, revision uint64, begin, end int64) operation {
		return operation{writer: writer, revision: revision, begin: begin, end: end}
	}
	first := swap(1, 0, 2, done, 1, 2)
	for name, c := range map[string]struct {
		history history
		want    string
	}{
		"right":                             {history{first, load(1, 2, 3, 4), swap(2, 2, 3, done, 5, 6), load(2, 3, 7, 8)}, ""},
		"loaded while it is swapped":        {history{first, swap(2, 2, 3, done, 3, 6), load(2, 3, 4, 5)}, ""},
		"carried out, answer lost":          {history{first, swap(2, 2, 3, unknown, 3, 4), load(2, 3, 5, 6)}, ""},
		"carried out late":                  {history{first, swap(2, 2, 3, unknown, 3, 4), load(1, 2, 5, 6), load(2, 3, 7, 8)}, ""},
		"moved by one whose answer is lost": {history{first, swap(2, 2, 3, unknown, 3, 4), swap(3, 2, 3, moved, 5, 6)}, ""},
		"moved from what never was":         {history{first, swap(2, 7, 8, moved, 3, 4)}, ""},
		"two of one":                        {history{first, swap(2, 2, 3, done, 3, 6), swap(3, 2, 4, done, 4, 5)}, "two swaps of one revision"},
		"two contents":                      {history{first, swap(2, 2, 3, unknown, 3, 4), swap(3, 2, 3, unknown, 3, 4), load(2, 3, 5, 6), load(3, 3, 7, 8)}, "two configurations"},
		"loaded before it is written":       {history{first, load(2, 3, 3, 4), swap(2, 2, 3, done, 5, 6)}, "nobody has written"},
		"loaded what was moved":             {history{first, swap(2, 2, 3, done, 3, 4), swap(3, 2, 4, moved, 5, 6), load(3, 4, 7, 8)}, "nobody has written"},
		"loaded what nobody wrote":          {history{first, load(9, 5, 3, 4)}, "nobody has written"},
		"load back":                         {history{first, swap(2, 2, 3, done, 3, 4), load(1, 2, 5, 6)}, "back in time"},
		"load of nothing":                   {history{first, load(0, 0, 3, 4)}, "back in time"},
		"load behind a load":                {history{first, swap(2, 2, 3, unknown, 3, 4), load(2, 3, 5, 6), load(1, 2, 7, 8)}, "back in time"},
		"swap back":                         {history{first, swap(2, 2, 3, done, 3, 4), swap(3, 2, 3, done, 5, 6)}, "back in time"},
		"moved by nobody":                   {history{first, swap(2, 2, 3, moved, 3, 4)}, "nobody has moved"},
		"moved before it was":               {history{first, swap(2, 2, 3, moved, 3, 4), swap(3, 2, 3, done, 5, 6)}, "nobody has moved"},
	} {
		problems := strings.Join(c.history.problems(), "\n")
		if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
			t.Errorf("%s: %q, want %q", name, problems, c.want)
		}
	}
}
