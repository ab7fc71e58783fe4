// Drizzle, over mysql2: migrations, transactions, savepoints, errors, types, relations, upserts, reconnecting.
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const mysql = require("mysql2/promise");
const { drizzle } = require("drizzle-orm/mysql2");
const { migrate } = require("drizzle-orm/mysql2/migrator");
const { and, asc, count, eq, isNull, relations, sql, sum } = require("drizzle-orm");
const m = require("drizzle-orm/mysql-core");
const { options, values, check, fails, rolledBack, kill, main } = require("./common");

const bytes = m.customType({ dataType: () => "blob" });
const authors = m.mysqlTable("authors", {
  id: m.int().autoincrement().primaryKey(),
  name: m.varchar({ length: 50 }).notNull().unique(),
  alive: m.boolean().notNull().default(true),
  low: m.int(),
  high: m.int(),
  big: m.bigint({ mode: "bigint" }),
  price: m.decimal({ precision: 20, scale: 4 }),
  at: m.datetime({ mode: "date", fsp: 6 }),
  data: m.json(),
  bytes: bytes(),
  words: m.text(),
  nothing: m.int(),
});
const books = m.mysqlTable("books", {
  id: m.serial().primaryKey(),
  authorId: m.int("author_id").notNull().references(() => authors.id, { onDelete: "cascade" }),
  title: m.varchar({ length: 100 }),
  kind: m.mysqlEnum(["novel", "poem"]).default("novel"),
});
const schema = {
  authors,
  books,
  authorsRelations: relations(authors, ({ many }) => ({ books: many(books) })),
  booksRelations: relations(books, ({ one }) => ({ author: one(authors, { fields: [books.authorId], references: [authors.id] }) })),
};

// A migration as drizzle-kit writes it for this schema.
const migration = [
  "CREATE TABLE `authors` (\n\t`id` int AUTO_INCREMENT NOT NULL,\n\t`name` varchar(50) NOT NULL,\n\t`alive` boolean NOT NULL DEFAULT true,\n\t`low` int,\n\t`high` int,\n\t`big` bigint,\n\t`price` decimal(20,4),\n\t`at` datetime(6),\n\t`data` json,\n\t`bytes` blob,\n\t`words` text,\n\t`nothing` int,\n\tCONSTRAINT `authors_id` PRIMARY KEY(`id`),\n\tCONSTRAINT `authors_name_unique` UNIQUE(`name`)\n);\n",
  "\nCREATE TABLE `books` (\n\t`id` serial AUTO_INCREMENT NOT NULL,\n\t`author_id` int NOT NULL,\n\t`title` varchar(100),\n\t`kind` enum('novel','poem') DEFAULT 'novel',\n\tCONSTRAINT `books_id` PRIMARY KEY(`id`)\n);\n",
  "\nALTER TABLE `books` ADD CONSTRAINT `books_author_id_authors_id_fk` FOREIGN KEY (`author_id`) REFERENCES `authors`(`id`) ON DELETE cascade ON UPDATE no action;",
  "CREATE INDEX `kinds` ON `books` (`kind`);",
];

async function migrated(db) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
  try {
    fs.mkdirSync(path.join(folder, "meta"));
    fs.writeFileSync(path.join(folder, "0000_all.sql"), migration.join("--> statement-breakpoint"));
    fs.writeFileSync(path.join(folder, "meta/_journal.json"), JSON.stringify({ version: "7", dialect: "mysql", entries: [{ idx: 0, version: "5", when: 1, tag: "0000_all", breakpoints: true }] }));
    await migrate(db, { migrationsFolder: folder });
    await migrate(db, { migrationsFolder: folder }); // sees that all is there
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

main(async () => {
  const pool = mysql.createPool({ ...options, connectionLimit: 1 });
  const otherPool = mysql.createPool(options);
  const [db, other] = [drizzle(pool, { schema, mode: "default" }), drizzle(otherPool, { schema, mode: "default" })];
  await migrated(db);
  check("migrations", (await db.execute(sql`select count(*) as n from __drizzle_migrations`))[0], [{ n: 1 }]);

  await rolledBack((thrown) =>
    db.transaction(async (tx) => {
      await tx.insert(authors).values({ name: "Ann" });
      check("not committed", await other.$count(authors), 0);
      throw thrown;
    }),
  );
  check("rolled back", await db.$count(authors), 0);
  for (const isolationLevel of ["read uncommitted", "read committed", "repeatable read", "serializable"]) {
    const config = { isolationLevel, withConsistentSnapshot: true };
    await rolledBack((thrown) =>
      db.transaction(async (tx) => {
        await tx.insert(authors).values({ name: "Ann" });
        throw thrown;
      }, config),
    );
  }
  await fails(1792, () => db.transaction((tx) => tx.insert(authors).values({ name: "Ann" }), { accessMode: "read only" }));
  const id = await db.transaction(async (tx) => {
    const [{ id }] = await tx.insert(authors).values({ name: "Ann" }).$returningId();
    await rolledBack((thrown) =>
      tx.transaction(async (inner) => {
        await inner.insert(authors).values({ name: "Bob" });
        throw thrown;
      }),
    );
    await fails(1062, () => tx.transaction((inner) => inner.insert(authors).values({ name: "Ann" })));
    await tx.transaction((inner) => inner.insert(authors).values({ name: "Cid", alive: false }));
    return id;
  });
  const names = async (where) => (await other.select({ name: authors.name }).from(authors).where(where).orderBy(authors.name)).map((a) => a.name);
  check("the outer transaction stays", await names(), ["Ann", "Cid"]);

  await fails(1062, () => db.insert(authors).values({ name: "Ann" }));
  await fails(1048, () => db.insert(authors).values({ name: sql`null` }));
  await fails(1146, () => db.execute(sql`select * from missing`));
  await fails(1054, () => db.select().from(authors).where(sql`missing = 1`));
  await fails(1452, () => db.insert(books).values({ authorId: 99 }));
  await fails(1264, () => db.insert(authors).values({ name: "Dan", low: -2147483649 }));

  const want = { ...values, big: BigInt(values.big) };
  const [changed] = await db.update(authors).set(want).where(eq(authors.id, id));
  check("rows changed", changed.affectedRows, 1);
  const [{ id: _, name, alive, ...got }] = await other.select().from(authors).where(eq(authors.id, id));
  check("types", got, want);
  check("a boolean", [alive, await names(eq(authors.alive, false))], [true, ["Cid"]]);
  const { data, nothing, ...rest } = want;
  check("found by the values", await names(and(isNull(authors.nothing), ...Object.keys(rest).map((k) => eq(authors[k], rest[k])))), ["Ann"]);
  check("within JSON", await names(sql`${authors.data}->'$.a[0]' = 1`), ["Ann"]);
  const prepared = other.select({ big: authors.big, bytes: authors.bytes }).from(authors).where(eq(authors.name, sql.placeholder("name"))).prepare();
  check("prepared", await prepared.execute({ name: "Ann" }), [{ big: want.big, bytes: want.bytes }]);

  await db.insert(books).values([{ authorId: id, title: "a" }, { authorId: id, title: "b", kind: "poem" }]);
  const joined = db.select({ name: authors.name, n: count(books.id), sum: sum(books.authorId) }).from(authors).leftJoin(books, eq(books.authorId, authors.id));
  check("joined", await joined.groupBy(authors.name).orderBy(asc(authors.name)), [{ name: "Ann", n: 2, sum: String(2 * id) }, { name: "Cid", n: 0, sum: null }]);
  const query = { columns: { name: true }, with: { books: { columns: { title: true }, orderBy: [books.title] } }, orderBy: [authors.name] };
  const loaded = [{ name: "Ann", books: [{ title: "a" }, { title: "b" }] }, { name: "Cid", books: [] }];
  check("loaded by lateral joins", await db.query.authors.findMany(query), loaded);
  check("loaded by subqueries", await drizzle(pool, { schema, mode: "planetscale" }).query.authors.findMany(query), loaded);
  const author = { columns: { name: true, alive: true, low: true, at: true, nothing: true } };
  const { low, at } = want;
  const [, book] = await db.query.books.findMany({ with: { author }, orderBy: books.title });
  check("loaded from the other side", [book.kind, book.author], ["poem", { name: "Ann", alive: true, low, at, nothing: null }]);

  await db.insert(authors).values([{ name: "Cid", low: 1 }, { name: "Eve", low: 2 }]).onDuplicateKeyUpdate({ set: { low: sql`values(low)` } });
  await db.insert(authors).ignore().values({ name: "Cid", low: 3 });
  check("upserted", await db.select({ low: authors.low }).from(authors).where(sql`${authors.name} in ('Cid', 'Eve')`).orderBy(authors.name), [{ low: 1 }, { low: 2 }]);
  await db.transaction(async (tx) => {
    check("locked", (await tx.select({ low: authors.low }).from(authors).where(eq(authors.name, "Cid")).for("update"))[0].low, 1);
  });

  const mine = async () => (await db.execute(sql`select connection_id() as id`))[0][0].id;
  const before = await mine();
  await kill(before);
  check("another connection", (await mine()) !== before, true);

  await db.delete(authors).where(eq(authors.id, id));
  check("deleted with its books", await db.$count(books), 0);
  await Promise.all([pool.end(), otherPool.end()]);
});
