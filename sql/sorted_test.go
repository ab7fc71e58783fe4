package sql

import "testing"

// ORDER BY sorts by collations, up and down, with NULL where MySQL has it, and stays
// as it was where strings are equal.
func TestSorted(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE o (id INT PRIMARY KEY, ci VARCHAR(10) COLLATE utf8mb4_0900_ai_ci, b CHAR(10) COLLATE utf8mb4_bin, l VARCHAR(10) CHARACTER SET latin1)")
	for i, s := range []string{"'b'", "'a'", "'A'", "NULL", "'á'", "''", "'B'", "'ab'", "NULL", "'aB'"} {
		p.run("INSERT INTO o VALUES (" + string(rune('0'+i)) + ", " + s + ", " + s + ", " + s + ")")
	}
	for query, want := range map[string]string{
		"SELECT id FROM o ORDER BY ci":                                  "3 8 5 1 2 4 7 9 0 6",
		"SELECT id FROM o ORDER BY ci DESC":                             "0 6 7 9 1 2 4 5 3 8",
		"SELECT id FROM o WHERE id BETWEEN 0 AND 9 ORDER BY b":          "3 8 5 2 6 1 9 7 0 4",
		"SELECT id FROM o WHERE id BETWEEN 0 AND 9 ORDER BY ci, b DESC": "3 8 5 4 1 2 7 9 0 6",
		"SELECT id FROM o ORDER BY l, id DESC":                          "8 3 5 4 2 1 9 7 6 0",
	} {
		for range 3 {
			p.run(query)
		}
		schema, rows, err := p.gms.run(query)
		got := ""
		for _, row := range rows {
			v, _ := schema[0].Type.SQL(nil, nil, row[0])
			got += v.ToString() + " "
		}
		if err != nil || got != want+" " {
			t.Errorf("%s: %s, %v, want %s", query, got, err, want)
		}
	}
}
