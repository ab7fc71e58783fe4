// TypeORM, over mysql2: synchronizing, migrations, transactions, savepoints, errors, types, relations, upserts, reconnecting.
const { options, values, check, fails, rolledBack, kill, main } = require("./common");
const { DataSource, EntitySchema, IsNull, Like } = require("typeorm");

const Author = new EntitySchema({
  name: "Author",
  tableName: "authors",
  columns: {
    id: { type: Number, primary: true, generated: true },
    name: { type: "varchar", length: 50, unique: true },
    alive: { type: Boolean, default: true },
    low: { type: "int", nullable: true },
    high: { type: "int", nullable: true },
    big: { type: "bigint", nullable: true },
    price: { type: "decimal", precision: 20, scale: 4, nullable: true },
    at: { type: "datetime", precision: 6, nullable: true },
    data: { type: "json", nullable: true },
    bytes: { type: "blob", nullable: true },
    words: { type: "text", nullable: true },
    nothing: { type: "int", nullable: true },
    changed: { type: "datetime", updateDate: true },
    version: { type: Number, version: true },
  },
  relations: { books: { type: "one-to-many", target: "Book", inverseSide: "author", cascade: true } },
});
const Book = new EntitySchema({
  name: "Book",
  tableName: "books",
  columns: {
    id: { type: "bigint", primary: true, generated: "increment", unsigned: true },
    title: { type: "varchar" },
    kind: { type: "enum", enum: ["novel", "poem"], default: "novel" },
  },
  relations: {
    author: { type: "many-to-one", target: "Author", nullable: false, onDelete: "CASCADE" },
    tags: { type: "many-to-many", target: "Tag", joinTable: { name: "book_tags" }, cascade: true },
  },
  indices: [{ name: "kinds", columns: ["kind"] }],
});
const Tag = new EntitySchema({ name: "Tag", tableName: "tags", columns: { name: { type: "varchar", length: 20, primary: true } } });

class Years1700000000000 {
  async up(runner) {
    await runner.query("alter table books add year smallint, add index years (year)");
  }
  async down(runner) {
    await runner.query("alter table books drop index years, drop column year");
  }
}

async function open(more) {
  const { host, port, database } = options;
  const source = new DataSource({ type: "mysql", connectorPackage: "mysql2", host, port, username: "root", database, charset: "utf8mb4", timezone: "Z", supportBigNumbers: true, entities: [Author, Book, Tag], migrations: [Years1700000000000], extra: { connectionLimit: 2 }, ...more });
  return source.initialize();
}

main(async () => {
  const db = await open();
  const other = await open();
  await db.synchronize();
  check("nothing is left to do", (await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query), []);
  check("migrated", (await db.runMigrations()).length, 1);
  check("migrated again", (await db.runMigrations()).length, 0);
  await db.undoLastMigration();

  const authors = db.getRepository(Author);
  const books = db.getRepository(Book);
  const names = async (where) => (await other.getRepository(Author).find({ where, order: { name: "ASC" } })).map((a) => a.name);
  await rolledBack((thrown) =>
    db.transaction(async (m) => {
      await m.insert(Author, { name: "Ann" });
      check("not committed", await names(), []);
      throw thrown;
    }),
  );
  check("rolled back", await names(), []);
  for (const level of ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
    await rolledBack((thrown) =>
      db.transaction(level, async (m) => {
        await m.insert(Author, { name: "Ann" });
        throw thrown;
      }),
    );
  }
  await db.transaction(async (m) => {
    await m.save(Author, { name: "Ann" });
    await rolledBack((thrown) =>
      m.transaction(async (inner) => {
        await inner.save(Author, { name: "Bob" });
        throw thrown;
      }),
    );
    await fails(1062, () => m.transaction((inner) => inner.insert(Author, { name: "Ann" })));
    await m.transaction((inner) => inner.save(Author, { name: "Cid", alive: false }));
  });
  check("the outer transaction stays", await names(), ["Ann", "Cid"]);

  await fails(1062, () => authors.insert({ name: "Ann" }));
  await fails(1048, () => authors.insert({ name: () => "null" }));
  await fails(1146, () => db.query("select * from missing"));
  await fails(1054, () => db.query("select missing from authors"));
  await fails(1452, () => books.insert({ title: "none", author: { id: 99 } }));
  await fails(1264, () => authors.insert({ name: "Dan", low: -2147483649 }));

  const ann = await authors.findOneBy({ name: "Ann" });
  await authors.save(Object.assign(ann, values));
  const again = await other.getRepository(Author).findOneBy({ id: ann.id });
  check("types", Object.fromEntries(Object.keys(values).map((k) => [k, again[k]])), values);
  check("a boolean", [again.alive, await names({ alive: false })], [true, ["Cid"]]);
  check("a version", again.version, 2);
  const { data, nothing, ...rest } = values;
  check("found by the values", await names({ ...rest, nothing: IsNull(), name: Like("A%") }), ["Ann"]);

  await authors.save(Object.assign(ann, { books: [{ title: "a", tags: [{ name: "x" }, { name: "y" }] }, { title: "b", kind: "poem" }] }));
  const shape = (found) => found.map((a) => [a.name, a.books.map((b) => [b.title, b.kind, b.tags.map((t) => t.name)])]);
  const want = [["Ann", [["a", "novel", ["x", "y"]], ["b", "poem", []]]], ["Cid", []]];
  const find = { relations: { books: { tags: true } }, order: { name: "ASC", books: { title: "ASC", tags: { name: "ASC" } } } };
  check("loaded", shape(await authors.find(find)), want);
  check("loaded in part", shape(await authors.find({ ...find, take: 1 })), want.slice(0, 1));
  check("loaded by queries", (await authors.find({ ...find, relationLoadStrategy: "query", order: { name: "ASC" } })).map((a) => a.books.length), [2, 0]);
  const counted = authors.createQueryBuilder("a").leftJoin("a.books", "b").select("a.name", "name").addSelect("count(b.id)", "n").groupBy("a.name").orderBy("a.name");
  check("counted", await counted.getRawMany(), [{ name: "Ann", n: "2" }, { name: "Cid", n: "0" }]); // it wants a BIGINT as a string
  check("found and counted", (await authors.findAndCount({ where: { books: { kind: "poem" } } }))[1], 1);

  await authors.upsert([{ name: "Cid", low: 1 }, { name: "Eve", low: 2 }], ["name"]);
  await authors.createQueryBuilder().insert().values({ name: "Cid", low: 3 }).orIgnore().updateEntity(false).execute();
  check("upserted", (await authors.find({ order: { name: "ASC" } })).map((a) => [a.name, a.low]), [["Ann", values.low], ["Cid", 1], ["Eve", 2]]);
  await authors.increment({ name: "Cid" }, "low", 5);
  await db.transaction(async (m) => {
    check("locked", (await m.findOne(Author, { where: { name: "Cid" }, lock: { mode: "pessimistic_write" } })).low, 6);
  });

  const one = await open({ extra: { connectionLimit: 1 } });
  const mine = async () => (await one.query("select connection_id() as id"))[0].id;
  const before = await mine();
  await kill(before);
  check("another connection", (await mine()) !== before, true);

  await authors.delete({ id: ann.id });
  check("deleted with its books", await books.count(), 0);
  await db.dropDatabase();
  check("dropped", await db.query("show tables"), []);
  await Promise.all([db.destroy(), other.destroy(), one.destroy()]);
});
