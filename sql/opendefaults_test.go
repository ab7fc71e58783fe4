package sql

import "testing"

// TestOpenDefaults: defaults as MariaDB dumps them, without the parentheses that MySQL wants.
func TestOpenDefaults(t *testing.T) {
	const dumped = "CREATE TABLE `df` (\n" +
		"  `id` int(11) NOT NULL,\n" +
		"  `a` varchar(36) DEFAULT uuid(),\n" +
		"  `b` int(11) DEFAULT (1 + 1),\n" +
		"  `d` datetime DEFAULT current_timestamp(),\n" +
		"  `f` date DEFAULT curdate(),\n" +
		"  `g` varchar(10) DEFAULT concat('a)',\"b\"),\n" +
		"  `h` int(11) DEFAULT -1,\n" +
		"  `i` int(11) DEFAULT (`b` * 2),\n" +
		"  `j` int(11) DEFAULT `b`,\n" +
		"  `k` bigint(20) DEFAULT (cast('4' as signed)),\n" +
		"  `m` datetime(3) DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),\n" +
		"  `o` bit(1) DEFAULT b'1',\n" +
		"  `r` double DEFAULT pi() COMMENT 'DEFAULT uuid()',\n" +
		"  `s` int(11) NOT NULL DEFAULT abs(`h`),\n" +
		"  `v` varchar(9) DEFAULT if(`b` = 2,'a','b'),\n" +
		"  `w` varchar(4) DEFAULT left('abc',2),\n" +
		"  `x` varchar(4) DEFAULT replace('abc','c','d'),\n" +
		"  `y` varchar(8) NOT NULL DEFAULT '',\n" +
		"  `q` date DEFAULT (current_timestamp() - interval 1 day),\n" +
		"  PRIMARY KEY (`id`)\n" +
		") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;"
	for _, s := range []shows{
		{dumped + "insert into df (id) values (1)", "select length(a), b, g, h, i, j, r > 3.14, s, v, w, x, y from df", "36 | 2 | a)b | -1 | 4 | 2 | 1 | 1 | a | ab | abd | \n"},
		{dumped + "alter table df add z varchar(36) default uuid() after id, add z2 int not null default length('abc') comment 'x'; insert into df (id) values (1)", "select length(z), z2, w from df", "36 | 3 | ab\n"},
	} {
		s.test(t)
	}
}
