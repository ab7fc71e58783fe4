"""Transactions, errors, types and reconnecting through a DB-API driver.

usage: dbapi.py pymysql|MySQLdb HOST PORT DATABASE
"""
import datetime
import decimal
import importlib
import sys

name, host, port, database = sys.argv[1:]
driver = importlib.import_module(name)


def connect():
    return driver.connect(host=host, port=int(port), user="root", db=database, charset="utf8mb4")


def check(what, got, want):
    if got != want:
        raise SystemExit("%s: %r, want %r" % (what, got, want))


def query(c, text, *args):
    cursor = c.cursor()
    cursor.execute(text, args or None)
    return list(cursor.fetchall())


def fails(number, f):
    try:
        f()
    except driver.Error as e:
        check("error", e.args[0], number)
    else:
        raise SystemExit("error %d was expected" % number)


one, two = connect(), connect()
query(one, "create table t (id int primary key, v int not null)")
query(one, "insert into t values (1, 1)")

# Without a word about autocommit the driver has it off.
one.rollback()
check("after rollback", query(two, "select count(*) from t"), [(0,)])
two.rollback()
query(one, "insert into t values (1, 1)")
check("not committed", query(two, "select count(*) from t"), [(0,)])
one.commit()
two.rollback()
check("committed", query(two, "select v from t"), [(1,)])
two.rollback()

# Savepoints.
query(one, "update t set v = 2")
query(one, "savepoint a")
query(one, "update t set v = 3")
query(one, "rollback to savepoint a")
one.commit()
two.rollback()
check("back to the savepoint", query(two, "select v from t"), [(2,)])
two.rollback()

# A failed statement leaves the transaction open.
query(one, "insert into t values (2, 2)")
fails(1062, lambda: query(one, "insert into t values (1, 9)"))
fails(1048, lambda: query(one, "insert into t values (9, null)"))
fails(1146, lambda: query(one, "select * from missing"))
fails(1064, lambda: query(one, "selct 1"))
one.commit()
check("after errors", query(one, "select id from t order by id"), [(1,), (2,)])

# Autocommit by the driver's own switch.
one.autocommit(True)
query(one, "update t set v = 5 where id = 2")
two.rollback()
check("autocommit", query(two, "select v from t where id = 2"), [(5,)])
one.autocommit(False)
query(one, "update t set v = 6 where id = 2")
one.rollback()
check("rolled back again", query(one, "select v from t where id = 2"), [(5,)])

# Types, both ways.
query(one, """create table types (id int primary key auto_increment, i bigint, u bigint unsigned, d decimal(20,4), f double,
    s varchar(100), b varbinary(100), t mediumtext, day date, at datetime(6), e enum('a','b'), n int)""")
row = (-2**63, 2**64 - 1, decimal.Decimal("-12345678901234.5678"), 1.5, "z\u00e4\U0001f600'\"\\%", b"\x00\xff'", "x" * 70000,
       datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 23, 59, 59, 123456), "b", None)
cursor = one.cursor()
cursor.execute("insert into types (i,u,d,f,s,b,t,day,at,e,n) values (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)", row)
check("id", cursor.lastrowid, 1)
cursor.executemany("insert into types (i) values (%s)", [(k,) for k in range(1000)])
check("rows", cursor.rowcount, 1000)
check("types", query(one, "select i,u,d,f,s,b,t,day,at,e,n from types where id = 1"), [row])
check("sum", query(one, "select sum(i) from types where id > 1"), [(decimal.Decimal(499500),)])
one.commit()

# The server ends a connection; another one goes on.
thread = query(two, "select connection_id()")[0][0]
query(one, "kill %d" % thread)
try:
    query(two, "select 1")
except driver.Error as e:
    if e.args[0] not in (0, 2006, 2013):
        raise
else:
    raise SystemExit("a killed connection answers")
two = connect()
check("reconnected", query(two, "select count(*) from t"), [(2,)])
two.close()
one.close()
print("ok")
