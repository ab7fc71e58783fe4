"""TPC-C as programs in Python run it, with PyMySQL's text protocol.

Two styles take turns, transaction by transaction:

- py-tpcc's: a statement for each row, keys compared one by one.
- go-tpc's: FOR UPDATE, lists of whole keys ((w, d, o) IN ((...), ...)), INSERTs of many rows.

Usage: tpcc.py HOST PORT DATABASE [NAME=NUMBER ...]; the names are those of DEFAULTS. It makes
the tables, fills them, runs the transactions, and checks conditions 1 to 4 of TPC-C's clause
3.3.2. It prints figures to stderr, and ok.
"""

import random
import sys
import threading
import time

import pymysql

DEFAULTS = dict(warehouses=1, items=200, customers=30, clients=2, transactions=150, seconds=0, seed=1)
DISTRICTS = 10
CONFLICTS = (1205, 1213)  # the transaction is run again
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")

SCHEMA = """
CREATE TABLE WAREHOUSE (W_ID SMALLINT DEFAULT '0' NOT NULL, W_NAME VARCHAR(16), W_STREET_1 VARCHAR(32), W_STREET_2 VARCHAR(32),
  W_CITY VARCHAR(32), W_STATE VARCHAR(2), W_ZIP VARCHAR(9), W_TAX DECIMAL(4,4), W_YTD DECIMAL(12,2), PRIMARY KEY (W_ID));
CREATE TABLE DISTRICT (D_ID TINYINT DEFAULT '0' NOT NULL, D_W_ID SMALLINT DEFAULT '0' NOT NULL, D_NAME VARCHAR(16),
  D_STREET_1 VARCHAR(32), D_STREET_2 VARCHAR(32), D_CITY VARCHAR(32), D_STATE VARCHAR(2), D_ZIP VARCHAR(9), D_TAX DECIMAL(4,4),
  D_YTD DECIMAL(12,2), D_NEXT_O_ID INT, PRIMARY KEY (D_W_ID, D_ID),
  CONSTRAINT D_FKEY_W FOREIGN KEY (D_W_ID) REFERENCES WAREHOUSE (W_ID));
CREATE TABLE ITEM (I_ID INTEGER DEFAULT '0' NOT NULL, I_IM_ID INTEGER, I_NAME VARCHAR(32), I_PRICE DECIMAL(5,2), I_DATA VARCHAR(64),
  PRIMARY KEY (I_ID));
CREATE TABLE CUSTOMER (C_ID INTEGER DEFAULT '0' NOT NULL, C_D_ID TINYINT DEFAULT '0' NOT NULL, C_W_ID SMALLINT DEFAULT '0' NOT NULL,
  C_FIRST VARCHAR(32), C_MIDDLE VARCHAR(2), C_LAST VARCHAR(32), C_CREDIT VARCHAR(2), C_CREDIT_LIM DECIMAL(12,2),
  C_DISCOUNT DECIMAL(4,4), C_BALANCE DECIMAL(12,2), C_YTD_PAYMENT DECIMAL(12,2), C_PAYMENT_CNT INTEGER, C_DELIVERY_CNT INTEGER,
  C_SINCE DATETIME, C_DATA VARCHAR(500), PRIMARY KEY (C_W_ID, C_D_ID, C_ID), KEY IDX_CUSTOMER (C_W_ID, C_D_ID, C_LAST, C_FIRST),
  CONSTRAINT C_FKEY_D FOREIGN KEY (C_W_ID, C_D_ID) REFERENCES DISTRICT (D_W_ID, D_ID));
CREATE TABLE HISTORY (H_C_ID INTEGER, H_C_D_ID TINYINT, H_C_W_ID SMALLINT, H_D_ID TINYINT, H_W_ID SMALLINT DEFAULT '0' NOT NULL,
  H_DATE DATETIME, H_AMOUNT DECIMAL(6,2), H_DATA VARCHAR(32));
CREATE TABLE STOCK (S_I_ID INTEGER DEFAULT '0' NOT NULL, S_W_ID SMALLINT DEFAULT '0' NOT NULL, S_QUANTITY INTEGER DEFAULT '0' NOT NULL,
  %s S_YTD INTEGER, S_ORDER_CNT INTEGER, S_REMOTE_CNT INTEGER, S_DATA VARCHAR(64), PRIMARY KEY (S_W_ID, S_I_ID), KEY (S_I_ID),
  CONSTRAINT S_FKEY_I FOREIGN KEY (S_I_ID) REFERENCES ITEM (I_ID));
CREATE TABLE ORDERS (O_ID INTEGER DEFAULT '0' NOT NULL, O_D_ID TINYINT DEFAULT '0' NOT NULL, O_W_ID SMALLINT DEFAULT '0' NOT NULL,
  O_C_ID INTEGER, O_ENTRY_D DATETIME, O_CARRIER_ID INTEGER, O_OL_CNT INTEGER, O_ALL_LOCAL INTEGER, PRIMARY KEY (O_W_ID, O_D_ID, O_ID),
  KEY IDX_ORDERS (O_W_ID, O_D_ID, O_C_ID),
  CONSTRAINT O_FKEY_C FOREIGN KEY (O_W_ID, O_D_ID, O_C_ID) REFERENCES CUSTOMER (C_W_ID, C_D_ID, C_ID));
CREATE TABLE NEW_ORDER (NO_O_ID INTEGER DEFAULT '0' NOT NULL, NO_D_ID TINYINT DEFAULT '0' NOT NULL, NO_W_ID SMALLINT DEFAULT '0' NOT NULL,
  PRIMARY KEY (NO_W_ID, NO_D_ID, NO_O_ID));
CREATE TABLE ORDER_LINE (OL_O_ID INTEGER DEFAULT '0' NOT NULL, OL_D_ID TINYINT DEFAULT '0' NOT NULL, OL_W_ID SMALLINT DEFAULT '0' NOT NULL,
  OL_NUMBER INTEGER DEFAULT '0' NOT NULL, OL_I_ID INTEGER, OL_SUPPLY_W_ID SMALLINT, OL_DELIVERY_D DATETIME, OL_QUANTITY INTEGER,
  OL_AMOUNT DECIMAL(6,2), OL_DIST_INFO VARCHAR(32), PRIMARY KEY (OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER),
  CONSTRAINT OL_FKEY_O FOREIGN KEY (OL_W_ID, OL_D_ID, OL_O_ID) REFERENCES ORDERS (O_W_ID, O_D_ID, O_ID))
""" % "".join("S_DIST_%02d VARCHAR(32)," % d for d in range(1, DISTRICTS + 1))


def last_name(n):
    return SYLLABLES[n // 100] + SYLLABLES[n // 10 % 10] + SYLLABLES[n % 10]


def text(r, low, high):
    return "".join(r.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(r.randint(low, high)))


def now():
    return time.strftime("%Y-%m-%d %H:%M:%S")


def load(connection, o):
    r, c = random.Random(o.seed), connection.cursor()
    for statement in SCHEMA.split(";"):
        c.execute(statement)

    def fill(table, rows):  # PyMySQL makes INSERTs of many rows of this
        for at in range(0, len(rows), 500):
            c.executemany("INSERT INTO %s VALUES (%s)" % (table, ",".join(["%s"] * len(rows[0]))), rows[at:at + 500])
            connection.commit()

    fill("ITEM", [(i, r.randint(1, 10000), text(r, 14, 24), r.randint(100, 10000) / 100, text(r, 26, 50)) for i in range(1, o.items + 1)])
    for w in range(1, o.warehouses + 1):
        fill("WAREHOUSE", [(w, text(r, 6, 10), "s1", "s2", "city", "CA", "123456789", r.randint(0, 2000) / 10000, 30000 * DISTRICTS)])
        fill("STOCK", [(i, w, r.randint(10, 100)) + ("d" * 24,) * DISTRICTS + (0, 0, 0, text(r, 26, 50)) for i in range(1, o.items + 1)])
        for d in range(1, DISTRICTS + 1):
            fill("DISTRICT", [(d, w, text(r, 6, 10), "s1", "s2", "city", "CA", "123456789", r.randint(0, 2000) / 10000, 30000, o.customers + 1)])
            fill("CUSTOMER", [(n, d, w, text(r, 8, 16), "OE", last_name((n - 1) % 1000), r.choice(("GC",) * 9 + ("BC",)), 50000,
                               r.randint(0, 5000) / 10000, -10, 10, 1, 0, now(), text(r, 300, 480)) for n in range(1, o.customers + 1)])
            fill("HISTORY", [(n, d, w, d, w, now(), 10, text(r, 12, 24)) for n in range(1, o.customers + 1)])
            customers = list(range(1, o.customers + 1))
            r.shuffle(customers)
            orders, lines, fresh = [], [], []
            for i, n in enumerate(customers, 1):
                is_new, count = i > o.customers * 7 // 10, r.randint(5, 15)
                orders.append((i, d, w, n, now(), None if is_new else r.randint(1, 10), count, 1))
                lines += [(i, d, w, k, r.randint(1, o.items), w, None if is_new else now(), 5, r.randint(1, 999999) / 100 if is_new else 0, "d" * 24)
                          for k in range(1, count + 1)]
                if is_new:
                    fresh.append((i, d, w))
            fill("ORDERS", orders)
            fill("NEW_ORDER", fresh)
            fill("ORDER_LINE", lines)


class Rollback(Exception):
    """1 % of the new orders end so."""


class Single:
    """The statements of py-tpcc."""

    def __init__(self, connection, o, r):
        self.connection, self.o, self.r = connection, o, r
        self.c = connection.cursor()

    def one(self, query, *args):
        self.c.execute(query, args)
        return self.c.fetchone()

    def all(self, query, *args):
        self.c.execute(query, args)
        return self.c.fetchall()

    def do(self, query, *args):
        return self.c.execute(query, args)

    def customer(self, w, d, columns):
        """The row of a customer, by number or by name; its number is last."""
        if self.r.random() < 0.4:
            n = self.r.randint(1, self.o.customers)
            return self.one("SELECT " + columns + ", C_ID FROM CUSTOMER WHERE C_W_ID = %s AND C_D_ID = %s AND C_ID = %s", w, d, n)
        name = last_name(self.r.randint(0, min(self.o.customers, 1000) - 1))
        rows = self.all("SELECT " + columns + ", C_ID FROM CUSTOMER WHERE C_W_ID = %s AND C_D_ID = %s AND C_LAST = %s ORDER BY C_FIRST", w, d, name)
        return rows[(len(rows) - 1) // 2]

    def place(self):
        return self.r.randint(1, self.o.warehouses), self.r.randint(1, DISTRICTS)

    def cart(self, w):
        """The items of an order, with their warehouses and quantities."""
        items = self.r.sample(range(1, self.o.items + 1), self.r.randint(5, 15))
        if self.r.random() < 0.01:
            items[-1] = self.o.items + 1  # there is none
        return [(i, self.r.randint(1, self.o.warehouses) if self.r.random() < 0.01 else w, self.r.randint(1, 10)) for i in items]

    def new_order(self):
        w, d = self.place()
        n, cart = self.r.randint(1, self.o.customers), self.cart(w)
        items = [self.one("SELECT I_PRICE, I_NAME, I_DATA FROM ITEM WHERE I_ID = %s", i) for i, _, _ in cart]
        if None in items:
            raise Rollback
        self.one("SELECT W_TAX FROM WAREHOUSE WHERE W_ID = %s", w)
        _, order = self.one("SELECT D_TAX, D_NEXT_O_ID FROM DISTRICT WHERE D_ID = %s AND D_W_ID = %s FOR UPDATE", d, w)
        self.one("SELECT C_DISCOUNT, C_LAST, C_CREDIT FROM CUSTOMER WHERE C_W_ID = %s AND C_D_ID = %s AND C_ID = %s", w, d, n)
        self.do("UPDATE DISTRICT SET D_NEXT_O_ID = %s WHERE D_ID = %s AND D_W_ID = %s", order + 1, d, w)
        self.do("INSERT INTO ORDERS (O_ID, O_D_ID, O_W_ID, O_C_ID, O_ENTRY_D, O_CARRIER_ID, O_OL_CNT, O_ALL_LOCAL) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                order, d, w, n, now(), None, len(cart), all(s == w for _, s, _ in cart))
        self.do("INSERT INTO NEW_ORDER (NO_O_ID, NO_D_ID, NO_W_ID) VALUES (%s, %s, %s)", order, d, w)
        for k, ((i, s, count), item) in enumerate(zip(cart, items), 1):
            quantity, _, ytd, orders, remote, info = self.one(
                "SELECT S_QUANTITY, S_DATA, S_YTD, S_ORDER_CNT, S_REMOTE_CNT, S_DIST_" + "%02d" % d + " FROM STOCK WHERE S_I_ID = %s AND S_W_ID = %s FOR UPDATE", i, s)
            quantity = quantity - count if quantity >= count + 10 else quantity + 91 - count
            self.do("UPDATE STOCK SET S_QUANTITY = %s, S_YTD = %s, S_ORDER_CNT = %s, S_REMOTE_CNT = %s WHERE S_I_ID = %s AND S_W_ID = %s",
                    quantity, ytd + count, orders + 1, remote + (s != w), i, s)
            self.do("INSERT INTO ORDER_LINE (OL_O_ID, OL_D_ID, OL_W_ID, OL_NUMBER, OL_I_ID, OL_SUPPLY_W_ID, OL_DELIVERY_D, OL_QUANTITY, OL_AMOUNT, OL_DIST_INFO) "
                    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", order, d, w, k, i, s, None, count, min(count * item[0], 9999), info)

    def payment(self):
        w, d = self.place()
        amount = self.r.randint(100, 500000) / 100
        credit, data, balance, ytd, payments, n = self.customer(w, d, "C_CREDIT, C_DATA, C_BALANCE, C_YTD_PAYMENT, C_PAYMENT_CNT")
        warehouse = self.one("SELECT W_NAME, W_STREET_1, W_STREET_2, W_CITY, W_STATE, W_ZIP FROM WAREHOUSE WHERE W_ID = %s", w)
        district = self.one("SELECT D_NAME, D_STREET_1, D_STREET_2, D_CITY, D_STATE, D_ZIP FROM DISTRICT WHERE D_W_ID = %s AND D_ID = %s", w, d)
        self.do("UPDATE WAREHOUSE SET W_YTD = W_YTD + %s WHERE W_ID = %s", amount, w)
        self.do("UPDATE DISTRICT SET D_YTD = D_YTD + %s WHERE D_W_ID = %s AND D_ID = %s", amount, w, d)
        if credit == "BC":
            data = ("%d %d %d %d %d %.2f|%s" % (n, d, w, d, w, amount, data))[:500]
            self.do("UPDATE CUSTOMER SET C_BALANCE = C_BALANCE - %s, C_YTD_PAYMENT = C_YTD_PAYMENT + %s, C_PAYMENT_CNT = C_PAYMENT_CNT + 1, C_DATA = %s "
                    "WHERE C_W_ID = %s AND C_D_ID = %s AND C_ID = %s", amount, amount, data, w, d, n)
        else:
            self.do("UPDATE CUSTOMER SET C_BALANCE = C_BALANCE - %s, C_YTD_PAYMENT = C_YTD_PAYMENT + %s, C_PAYMENT_CNT = C_PAYMENT_CNT + 1 "
                    "WHERE C_W_ID = %s AND C_D_ID = %s AND C_ID = %s", amount, amount, w, d, n)
        self.do("INSERT INTO HISTORY VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", n, d, w, d, w, now(), amount, warehouse[0] + "    " + district[0])

    def order_status(self):
        w, d = self.place()
        n = self.customer(w, d, "C_FIRST, C_MIDDLE, C_LAST, C_BALANCE")[-1]
        order = self.one("SELECT O_ID, O_CARRIER_ID, O_ENTRY_D FROM ORDERS WHERE O_W_ID = %s AND O_D_ID = %s AND O_C_ID = %s ORDER BY O_ID DESC LIMIT 1", w, d, n)
        if order:
            self.all("SELECT OL_SUPPLY_W_ID, OL_I_ID, OL_QUANTITY, OL_AMOUNT, OL_DELIVERY_D FROM ORDER_LINE WHERE OL_W_ID = %s AND OL_D_ID = %s AND OL_O_ID = %s", w, d, order[0])

    def delivery(self):
        w, carrier = self.r.randint(1, self.o.warehouses), self.r.randint(1, 10)
        for d in range(1, DISTRICTS + 1):
            fresh = self.one("SELECT NO_O_ID FROM NEW_ORDER WHERE NO_D_ID = %s AND NO_W_ID = %s AND NO_O_ID > -1 ORDER BY NO_O_ID LIMIT 1 FOR UPDATE", d, w)
            if fresh is None:
                continue
            order = fresh[0]
            n, = self.one("SELECT O_C_ID FROM ORDERS WHERE O_ID = %s AND O_D_ID = %s AND O_W_ID = %s", order, d, w)
            total, = self.one("SELECT SUM(OL_AMOUNT) FROM ORDER_LINE WHERE OL_O_ID = %s AND OL_D_ID = %s AND OL_W_ID = %s", order, d, w)
            self.do("DELETE FROM NEW_ORDER WHERE NO_D_ID = %s AND NO_W_ID = %s AND NO_O_ID = %s", d, w, order)
            self.do("UPDATE ORDERS SET O_CARRIER_ID = %s WHERE O_ID = %s AND O_D_ID = %s AND O_W_ID = %s", carrier, order, d, w)
            self.do("UPDATE ORDER_LINE SET OL_DELIVERY_D = %s WHERE OL_O_ID = %s AND OL_D_ID = %s AND OL_W_ID = %s", now(), order, d, w)
            self.do("UPDATE CUSTOMER SET C_BALANCE = C_BALANCE + %s WHERE C_ID = %s AND C_D_ID = %s AND C_W_ID = %s", total, n, d, w)

    def stock_level(self):
        w, d = self.place()
        order, = self.one("SELECT D_NEXT_O_ID FROM DISTRICT WHERE D_W_ID = %s AND D_ID = %s", w, d)
        self.one("SELECT COUNT(DISTINCT(OL_I_ID)) FROM ORDER_LINE, STOCK WHERE OL_W_ID = %s AND OL_D_ID = %s AND OL_O_ID < %s AND OL_O_ID >= %s "
                 "AND S_W_ID = %s AND S_I_ID = OL_I_ID AND S_QUANTITY < %s", w, d, order, order - 20, w, self.r.randint(10, 20))


class Lists(Single):
    """The statements of go-tpc where they differ: lists of keys, rows and FOR UPDATE."""

    def new_order(self):
        w, d = self.place()
        n, cart = self.r.randint(1, self.o.customers), self.cart(w)
        self.one("SELECT c_discount, c_last, c_credit, w_tax FROM CUSTOMER, WAREHOUSE WHERE w_id = %s AND c_w_id = w_id AND c_d_id = %s AND c_id = %s", w, d, n)
        order, _ = self.one("SELECT d_next_o_id, d_tax FROM DISTRICT WHERE d_id = %s AND d_w_id = %s FOR UPDATE", d, w)
        self.do("UPDATE DISTRICT SET d_next_o_id = %s + 1 WHERE d_id = %s AND d_w_id = %s", order, d, w)
        self.do("INSERT INTO ORDERS (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                order, d, w, n, now(), len(cart), 1)
        self.do("INSERT INTO NEW_ORDER (no_o_id, no_d_id, no_w_id) VALUES (%s, %s, %s)", order, d, w)
        prices = {i: price for price, _, _, i in self.all("SELECT i_price, i_name, i_data, i_id FROM ITEM WHERE i_id IN %s", [i for i, _, _ in cart])}
        if len(prices) < len(cart):
            raise Rollback
        stock = {(s, i): quantity for i, s, quantity in self.all(
            "SELECT s_i_id, s_w_id, s_quantity FROM STOCK WHERE (s_w_id, s_i_id) IN %s FOR UPDATE", [(s, i) for i, s, _ in cart])}
        for i, s, count in cart:
            quantity = stock[s, i] - count
            self.do("UPDATE STOCK SET s_quantity = %s, s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %s WHERE s_i_id = %s AND s_w_id = %s",
                    quantity if quantity >= 10 else quantity + 91, count, s != w, i, s)
        self.c.executemany("INSERT INTO ORDER_LINE (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) "
                           "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                           [(order, d, w, k, i, s, count, min(count * prices[i], 9999), "d" * 24) for k, (i, s, count) in enumerate(cart, 1)])

    def delivery(self):
        w, carrier = self.r.randint(1, self.o.warehouses), self.r.randint(1, 10)
        keys = []
        for d in range(1, DISTRICTS + 1):
            fresh = self.one("SELECT no_o_id FROM NEW_ORDER WHERE no_w_id = %s AND no_d_id = %s ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE", w, d)
            if fresh:
                keys.append((w, d, fresh[0]))
        if not keys:
            return
        assert self.do("DELETE FROM NEW_ORDER WHERE (no_w_id, no_d_id, no_o_id) IN %s", keys) == len(keys)
        assert self.do("UPDATE ORDERS SET o_carrier_id = %s WHERE (o_w_id, o_d_id, o_id) IN %s", carrier, keys) == len(keys)
        customers = self.all("SELECT o_d_id, o_c_id FROM ORDERS WHERE (o_w_id, o_d_id, o_id) IN %s", keys)
        self.do("UPDATE ORDER_LINE SET ol_delivery_d = %s WHERE (ol_w_id, ol_d_id, ol_o_id) IN %s", now(), keys)
        totals = dict(self.all("SELECT ol_d_id, SUM(ol_amount) FROM ORDER_LINE WHERE (ol_w_id, ol_d_id, ol_o_id) IN %s GROUP BY ol_d_id", keys))
        for d, n in customers:
            self.do("UPDATE CUSTOMER SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", totals[d], w, d, n)

    def stock_level(self):
        w, d = self.place()
        order, = self.one("SELECT d_next_o_id FROM DISTRICT WHERE d_w_id = %s AND d_id = %s", w, d)
        self.one("SELECT COUNT(DISTINCT (s_i_id)) FROM ORDER_LINE, STOCK WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id < %s AND ol_o_id >= %s - 20 "
                 "AND s_w_id = %s AND s_i_id = ol_i_id AND s_quantity < %s", w, d, order, order, w, self.r.randint(10, 20))


MIX = (("new_order",) * 45 + ("payment",) * 43 + ("order_status",) * 4 + ("delivery",) * 4 + ("stock_level",) * 4)


class Counts:
    def __init__(self):
        self.done, self.conflicts, self.failed = {}, 0, None


def run(o, connect, counts, number):
    r = random.Random(o.seed * 1000 + number)
    connection = connect()
    styles = [Single(connection, o, r), Lists(connection, o, r)]
    until, at = time.time() + o.seconds, 0
    while time.time() < until if o.seconds else at < o.transactions:
        name, before = r.choice(MIX), r.getstate()
        while True:
            r.setstate(before)
            try:
                getattr(styles[at % 2], name)()
                connection.commit()
                counts.done[name] = counts.done.get(name, 0) + 1
                break
            except Rollback:
                connection.rollback()
                break
            except pymysql.MySQLError as e:
                connection.rollback()
                if e.args[0] not in CONFLICTS:
                    raise
                counts.conflicts += 1
        at += 1
    connection.close()


CONDITIONS = {
    "3.3.2.1": "SELECT W_ID, W_YTD, SUM(D_YTD) FROM WAREHOUSE, DISTRICT WHERE D_W_ID = W_ID GROUP BY W_ID, W_YTD HAVING W_YTD <> SUM(D_YTD)",
    "3.3.2.2": "SELECT D_W_ID, D_ID FROM DISTRICT WHERE D_NEXT_O_ID - 1 <> (SELECT MAX(O_ID) FROM ORDERS WHERE O_W_ID = D_W_ID AND O_D_ID = D_ID) "
               "OR D_NEXT_O_ID - 1 <> COALESCE((SELECT MAX(NO_O_ID) FROM NEW_ORDER WHERE NO_W_ID = D_W_ID AND NO_D_ID = D_ID), D_NEXT_O_ID - 1)",
    "3.3.2.3": "SELECT NO_W_ID, NO_D_ID FROM NEW_ORDER GROUP BY NO_W_ID, NO_D_ID HAVING MAX(NO_O_ID) - MIN(NO_O_ID) + 1 <> COUNT(*)",
    "3.3.2.4": "SELECT O_W_ID, O_D_ID, SUM(O_OL_CNT) FROM ORDERS GROUP BY O_W_ID, O_D_ID "
               "HAVING SUM(O_OL_CNT) <> (SELECT COUNT(*) FROM ORDER_LINE WHERE OL_W_ID = O_W_ID AND OL_D_ID = O_D_ID)",
}


def check(connection):
    c = connection.cursor()
    for clause, query in CONDITIONS.items():
        c.execute(query)
        rows = c.fetchall()
        assert not rows, "condition %s does not hold: %s" % (clause, rows)


class Options:
    def __init__(self, given):
        self.__dict__.update(DEFAULTS)
        for name, _, value in (g.partition("=") for g in given):
            assert name in DEFAULTS, "no option " + name
            setattr(self, name, int(value))


def main():
    host, port, database, *given = sys.argv[1:]
    o = Options(given)

    def connect():
        return pymysql.connect(host=host, port=int(port), user="root", database=database)

    connection = connect()
    load(connection, o)
    connection.commit()
    check(connection)
    connection.commit()
    counts = [Counts() for _ in range(o.clients)]

    def client(number):
        try:
            run(o, connect, counts[number], number)
        except BaseException as e:
            counts[number].failed = e
            raise

    threads = [threading.Thread(target=client, args=(n,)) for n in range(o.clients)]
    began = time.time()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    took = time.time() - began
    for c in counts:
        if c.failed is not None:
            raise c.failed
    check(connection)
    total = {name: sum(c.done.get(name, 0) for c in counts) for name in sorted(set(MIX))}
    print("%.0f new orders a minute, %s, %d conflicts, %.1f s" % (total["new_order"] * 60 / took, total, sum(c.conflicts for c in counts), took), file=sys.stderr)
    print("ok")


main()
