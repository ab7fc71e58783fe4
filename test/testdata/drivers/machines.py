"""Inserts numbers into a table of a cluster, and goes on at another machine when one fails.

usage: machines.py HOST:PORT,HOST:PORT DATABASE CLIENT

Prints each number that is in the table, until its standard input ends, and then ok.
"""
import sys
import threading
import time

import pymysql

addresses = sys.argv[1].split(",")
database, client = sys.argv[2:]
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()


def connect():
    """Tries the machines in turn. read_timeout also bounds the wait for the greeting."""
    for _ in addresses:
        host, port = addresses[0].split(":")
        try:
            return pymysql.connect(host=host, port=int(port), user="root", database=database, autocommit=True, connect_timeout=1, read_timeout=20)
        except pymysql.err.OperationalError as e:
            failed = e
            addresses.append(addresses.pop(0))
    raise failed


connection = None
number, is_doubtful = 0, False
while not over.is_set():
    try:
        connection = connection or connect()
        cursor = connection.cursor()
        there = is_doubtful and cursor.execute("select 1 from numbers where client = %s and number = %s", (client, number))
        if not there:
            cursor.execute("insert into numbers values (%s, %s)", (client, number))
        print(number, flush=True)
        number, is_doubtful = number + 1, False
    except pymysql.err.OperationalError as e:
        # The machine has failed, or begins to stop, or a transaction conflicted (1213).
        print("error", e, flush=True)
        connection, is_doubtful = None, True
        time.sleep(0.05)
print("ok")
