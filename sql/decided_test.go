package sql

import (
	"slices"
	"testing"
)

// CASE, IF and IFNULL of decimals and whole numbers have the digits of MariaDB 10.11, as have results that are computed from
// them, by any way.
func TestDecidedDecimals(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"create database d", "use d", "create table t (id int primary key, d decimal(15,2), e decimal(5,4), i int, s smallint, f double)",
		"insert into t values (1, 12.50, 1.2345, 7, 3, 0.5), (2, 4.25, 0.5, 3, NULL, 1.5), (3, NULL, NULL, NULL, 1, NULL)"} {
		c.exec(q)
	}
	for query, want := range map[string]string{
		"select sum(case when id < 3 then d else 0 end) / sum(d) from t":                                                                                                   "1.000000\n",
		"select sum(case when i > 5 then d else 0 end) / 7 from t":                                                                                                         "1.785714\n",
		"select case when id = 1 then d else 0 end / 7, if(id = 1, d, 0) / 7, ifnull(d, 0) / 7 from t where id < 3":                                                        "1.785714 | 1.785714 | 1.785714\n0.000000 | 0.000000 | 0.607143\n",
		"select ifnull(e, i) / 7 from t order by id":                                                                                                                       "0.17635714\n0.07142857\nNULL\n",
		"select case id when 1 then d when 2 then i end, if(id = 2, e, d) from t order by id":                                                                              "12.50 | 12.5000\n3.00 | 0.5000\nNULL | NULL\n",
		"select avg(case when id < 3 then d else 0 end), avg(if(id < 3, d, 0)) from t":                                                                                     "5.583333 | 5.583333\n",
		"select 100.00 * sum(if(id = 1, d * (1 - e), 0)) / sum(d * (1 - e)) from t":                                                                                        "363.565891472868\n",
		"select x, x / 3 from (select case when id = 1 then d else 0 end as x from t) a order by x":                                                                        "0.00 | 0.000000\n0.00 | 0.000000\n12.50 | 4.166667\n",
		"select case when id = 1 then d else 0 end as x, count(*) from t group by case when id = 1 then d else 0 end order by x":                                           "0.00 | 2\n12.50 | 1\n",
		"select (case when id = 1 then d else 0 end) / 7, cast(case when id = 1 then d else 0 end as char), 1 + ((case when id = 1 then d else 0 end)) from t order by id": "1.785714 | 12.50 | 13.50\n0.000000 | 0.00 | 1.00\n0.000000 | 0.00 | 1.00\n",
		"select case when id = 1 then case when i > 5 then d else 0 end when id = 2 then (case when i > 5 then 0 else e end) else 3 end from t order by id":                "12.5000\n0.5000\n3.0000\n",
		"select max(case when id = 1 then d else s end), min(case when id = 1 then e else 100000 end) from t":                                                              "12.50 | 1.2345\n",
		"select if(id = 1, f, d), if(id = 1, d, null), case when id = 1 then i else s end from t order by id":                                                              "0.5 | 12.50 | 7\n4.25 | NULL | NULL\nNULL | NULL | 1\n",
	} {
		for n := range 3 {
			if got := c.shown(query); got != want {
				t.Errorf("execution %d of %s: %q, want %q", n+1, query, got, want)
			}
		}
	}
	c.exec("create table made select case when id = 1 then d else 0 end a, if(id = 1, e, i) b, ifnull(d, s) c, if(id = 1, d, 1.23456) g, case when 1 then e else 100 end h from t")
	var kinds []any
	for _, row := range c.exec("select column_type from information_schema.columns where table_name = 'made' order by ordinal_position") {
		kinds = append(kinds, row[0])
	}
	if want := []any{"decimal(15,2)", "decimal(14,4)", "decimal(15,2)", "decimal(18,5)", "decimal(7,4)"}; !slices.Equal(kinds, want) {
		t.Errorf("types %v, want %v", kinds, want)
	}
}
