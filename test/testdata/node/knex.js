// Knex, over mysql2: migrations, transactions, savepoints, errors, types, joins, upserts, reconnecting.
const { options, values, check, fails, rolledBack, kill, main } = require("./common");

const migrations = {
  getMigrations: async () => ["authors", "books"],
  getMigrationName: (name) => name,
  getMigration: async (name) => ({
    authors: {
      up: (k) =>
        k.schema.createTable("authors", (t) => {
          t.increments("id");
          t.string("name", 50).notNullable().unique();
          t.boolean("alive").notNullable().defaultTo(true);
          t.integer("low");
          t.integer("high");
          t.bigInteger("big");
          t.decimal("price", 20, 4);
          t.datetime("at", { precision: 6 });
          t.json("data");
          t.binary("bytes");
          t.text("words");
          t.integer("nothing");
        }),
      down: (k) => k.schema.dropTable("authors"),
    },
    books: {
      up: (k) =>
        k.schema
          .createTable("books", (t) => {
            t.bigIncrements("id");
            t.integer("author_id").unsigned().notNullable().references("authors.id").onDelete("CASCADE");
            t.string("title");
          })
          .alterTable("books", (t) => {
            t.enu("kind", ["novel", "poem"]).defaultTo("novel").index();
            t.renameColumn("title", "name");
          }),
      down: (k) => k.schema.dropTable("books"),
    },
  })[name],
};

main(async () => {
  const knex = require("knex")({
    client: "mysql2",
    connection: options,
    pool: { min: 1, max: 1 },
    migrations: { migrationSource: migrations },
    log: { warn() {} }, // it would print that a connection was lost
  });
  const other = require("knex")({ client: "mysql2", connection: options });
  const count = async (k) => (await k("authors").count({ n: "*" }))[0].n;

  check("migrated", (await knex.migrate.latest())[1], ["authors", "books"]);
  check("migrated again", (await knex.migrate.latest())[1], []);
  check("has a column", await knex.schema.hasColumn("books", "name"), true);

  await rolledBack((thrown) =>
    knex.transaction(async (trx) => {
      await trx("authors").insert({ name: "Ann" });
      check("not committed", await count(other), 0);
      throw thrown;
    }),
  );
  check("rolled back", await count(knex), 0);
  await knex.transaction(async (trx) => {
    check("inserted", (await trx("authors").insert({ name: "Ann" })).length, 1);
    await rolledBack((thrown) =>
      trx.transaction(async (inner) => {
        await inner("authors").insert({ name: "Bob" });
        throw thrown;
      }),
    );
    await fails(1062, () => trx.transaction((inner) => inner("authors").insert({ name: "Ann" })));
    await trx.transaction((inner) => inner("authors").insert({ name: "Cid", alive: false }));
  });
  check("the outer transaction stays", await other("authors").orderBy("name").pluck("name"), ["Ann", "Cid"]);

  await fails(1062, () => knex("authors").insert({ name: "Ann" }));
  await fails(1048, () => knex("authors").insert({ name: null }));
  await fails(1146, () => knex("missing"));
  await fails(1054, () => knex("authors").where({ missing: 1 }));
  await fails(1064, () => knex.raw("selec 1"));
  await fails(1452, () => knex("books").insert({ author_id: 99, name: "none" }));
  await fails(1264, () => knex("authors").insert({ name: "Dan", low: -2147483649 }));

  check("rows updated", await knex("authors").where({ name: "Ann" }).update({ ...values, data: JSON.stringify(values.data) }), 1);
  const { id, name, alive, ...got } = await knex("authors").where({ name: "Ann" }).first();
  check("types", got, values);
  check("a boolean", [alive, await knex("authors").where({ alive: false }).pluck("name")], [1, ["Cid"]]);
  check("found by the values", await knex("authors").where({ big: values.big, price: values.price, at: values.at, bytes: values.bytes, words: values.words }).pluck("id"), [id]);
  check("within JSON", await knex("authors").jsonExtract("data", "$.a[1]", "x").where({ id }), [{ x: "-2.5" }]);

  await knex("books").insert([{ author_id: id, name: "a" }, { author_id: id, name: "b", kind: "poem" }]);
  const joined = knex("authors").leftJoin("books", "books.author_id", "authors.id").groupBy("authors.name").orderBy("authors.name");
  check("joined", await joined.select("authors.name").count({ n: "books.id" }), [{ name: "Ann", n: 2 }, { name: "Cid", n: 0 }]);
  check("with", await knex.with("poems", knex("books").where({ kind: "poem" })).from("poems").pluck("name"), ["b"]);

  await knex("authors").insert([{ name: "Ann", low: 1 }, { name: "Eve", low: 2 }]).onConflict("name").merge(["low"]);
  await knex("authors").insert({ name: "Ann", low: 3 }).onConflict("name").ignore();
  check("upserted", await knex("authors").orderBy("name").select("name", "low"), [{ name: "Ann", low: 1 }, { name: "Cid", low: null }, { name: "Eve", low: 2 }]);

  const mine = async () => (await knex.select(knex.raw("connection_id() as id")))[0].id;
  const before = await mine();
  await kill(before);
  check("another connection", (await mine()) !== before, true);
  check("reconnected", await count(knex), 3);

  await knex("authors").where({ id }).delete();
  check("deleted with its books", (await knex("books")).length, 0);
  check("undone", (await knex.migrate.rollback())[1], ["books", "authors"]);
  check("dropped", await knex.schema.hasTable("authors"), false);
  await Promise.all([knex.destroy(), other.destroy()]);
});
