package sql

import "testing"

// TestTriggerSets: SET in a trigger computed otherwise than a SELECT: a TIME moved by an interval was
// NULL, and could not be stored in a text. The results are MariaDB's.
func TestTriggerSets(t *testing.T) {
	const setup = "create table t (x time, y varchar(30), z time, e enum('z', 'm'), c tinyint, n decimal(10, 3)); " +
		"create trigger b before insert on t for each row set new.y = new.x + interval 30 minute, new.z = new.x - interval 11 hour, new.c = new.e < 'n', new.n = round(-0.4e0); " +
		"create trigger u before update on t for each row set new.y = addtime(new.x, '01:00:00'); " +
		"insert into t (x, e) values ('10:00:00', 'm'), ('23:45:00', 'z')"
	for _, s := range []shows{
		{setup, "select y, z = '-01:00:00', z < '00:00:00', c, n from t order by x", "10:30:00 | 1 | 1 | 1 | 0.000\n24:15:00 | 0 | 0 | 0 | 0.000\n"},
		{setup + "; update t set c = 5", "select y from t order by x", "11:00:00\n24:45:00\n"},
		{setup + "; set @a = cast('10:00:00' as time) + interval 20 hour, @b = (select max(e) from t), @c = round(-0.4e0)", "select @a, @b, @c", "30:00:00.000000 | z | 0\n"},
	} {
		s.testTwice(t)
	}
}
