"""SQLAlchemy's core and ORM, over PyMySQL: tables, units of work, rollback, savepoints, errors.

usage: alchemy.py HOST PORT DATABASE
"""
import datetime
import decimal
import sys

import sqlalchemy as sa
from sqlalchemy import orm

host, port, database = sys.argv[1:]
engine = sa.create_engine("mysql+pymysql://root@%s:%s/%s?charset=utf8mb4" % (host, port, database), future=True, pool_pre_ping=True)
Base = orm.declarative_base()


class Author(Base):
    __tablename__ = "authors"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.String(50), nullable=False, unique=True)
    born = sa.Column(sa.Date)
    books = orm.relationship("Book", back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "books"
    id = sa.Column(sa.BigInteger, primary_key=True)
    author_id = sa.Column(sa.ForeignKey("authors.id"), nullable=False)
    title = sa.Column(sa.Text)
    price = sa.Column(sa.Numeric(10, 2), index=True)
    kind = sa.Column(sa.Enum("novel", "poem"), server_default="novel")
    printed = sa.Column(sa.DateTime)
    author = orm.relationship("Author", back_populates="books")


def check(what, got, want):
    if got != want:
        raise SystemExit("%s: %r, want %r" % (what, got, want))


Base.metadata.create_all(engine)
Base.metadata.create_all(engine)  # sees that all is there
with orm.Session(engine) as s:
    s.add(Author(name="Ann", born=datetime.date(1920, 1, 2), books=[
        Book(title="a\u00e4\U0001f600", price=decimal.Decimal("12.50"), printed=datetime.datetime(2001, 2, 3, 4, 5, 6)),
        Book(title="b", price=decimal.Decimal("3.00"), kind="poem")]))
    s.flush()
    s.rollback()
    check("rolled back", s.scalar(sa.select(sa.func.count()).select_from(Author)), 0)
    ann = Author(name="Ann", born=datetime.date(1920, 1, 2), books=[
        Book(title="a\u00e4\U0001f600", price=decimal.Decimal("12.50"), printed=datetime.datetime(2001, 2, 3, 4, 5, 6)),
        Book(title="b", price=decimal.Decimal("3.00"), kind="poem")])
    s.add_all([ann, Author(name="Bob")])
    s.commit()
    with s.begin_nested() as inner:
        ann.name = "other"
        s.flush()
        inner.rollback()
    check("back to the savepoint", ann.name, "Ann")
    try:
        with s.begin_nested():
            s.add(Author(name="Bob"))
            s.flush()
    except sa.exc.IntegrityError as e:
        check("error", e.orig.args[0], 1062)
    else:
        raise SystemExit("a duplicate was taken")
    ann.books[0].price += 1
    s.commit()

with orm.Session(engine) as s:
    got = s.execute(sa.select(Author.name, sa.func.sum(Book.price), sa.func.count(Book.id)).join(Book, isouter=True)
                    .group_by(Author.name).order_by(Author.name)).all()
    check("grouped", [tuple(r) for r in got], [("Ann", decimal.Decimal("16.50"), 2), ("Bob", None, 0)])
    book = s.scalars(sa.select(Book).options(orm.joinedload(Book.author)).where(Book.title.like("a%"))).one()
    check("loaded", (book.author.name, book.kind, book.printed), ("Ann", "novel", datetime.datetime(2001, 2, 3, 4, 5, 6)))
    s.delete(book.author)
    s.commit()
    check("deleted with its books", s.scalar(sa.select(sa.func.count(Book.id))), 0)

inspector = sa.inspect(engine)
check("tables", sorted(inspector.get_table_names()), ["authors", "books"])
check("foreign keys", [f["referred_table"] for f in inspector.get_foreign_keys("books")], ["authors"])
check("columns", [c["name"] for c in inspector.get_columns("books")], ["id", "author_id", "title", "price", "kind", "printed"])

# A connection of the pool is ended; the pool makes another one.
with engine.connect() as c:
    thread = c.scalar(sa.text("select connection_id()"))
other = sa.create_engine(engine.url, future=True)
with other.connect() as c:
    c.execute(sa.text("kill %d" % thread))
with engine.connect() as c:
    check("reconnected", c.scalar(sa.text("select 1")), 1)
Base.metadata.drop_all(engine)
check("dropped", sa.inspect(engine).get_table_names(), [])
print("ok")
