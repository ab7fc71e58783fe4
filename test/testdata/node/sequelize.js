// Sequelize, over mysql2: sync, transactions, savepoints, errors, types, relations, upserts, reconnecting.
const { options, values, check, fails, rolledBack, kill, main } = require("./common");
const { Sequelize, DataTypes, Op, Transaction } = require("sequelize");

const open = () =>
  new Sequelize(options.database, options.user, "", {
    dialect: "mysql",
    host: options.host,
    port: options.port,
    logging: false,
    pool: { max: 2 },
    dialectOptions: { charset: "utf8mb4", supportBigNumbers: true },
  });

function define(db) {
  const Author = db.define("author", {
    name: { type: DataTypes.STRING(50), allowNull: false, unique: "names" },
    alive: { type: DataTypes.BOOLEAN, defaultValue: true },
    low: DataTypes.INTEGER,
    high: DataTypes.INTEGER,
    big: DataTypes.BIGINT,
    price: DataTypes.DECIMAL(20, 4),
    at: DataTypes.DATE(6),
    data: DataTypes.JSON,
    bytes: DataTypes.BLOB,
    words: DataTypes.TEXT,
    nothing: DataTypes.INTEGER,
  });
  const Book = db.define("book", { title: DataTypes.STRING, kind: { type: DataTypes.ENUM("novel", "poem"), defaultValue: "novel" } }, { indexes: [{ fields: ["kind"] }] });
  Author.hasMany(Book, { foreignKey: { allowNull: false }, onDelete: "CASCADE" });
  Book.belongsTo(Author);
  const Tag = db.define("tag", { name: { type: DataTypes.STRING(20), primaryKey: true } }, { timestamps: false });
  Book.belongsToMany(Tag, { through: "book_tags" });
  Tag.belongsToMany(Book, { through: "book_tags" });
  return { Author, Book, Tag };
}

main(async () => {
  const db = open();
  const other = define(open());
  const { Author, Book, Tag } = define(db);
  await db.sync();
  await db.sync({ alter: true }); // sees that all is there
  await Author.sync({ alter: true });
  check("indexes", (await db.getQueryInterface().showIndex("authors")).map((i) => i.name).sort(), ["PRIMARY", "names"]);

  await rolledBack((thrown) =>
    db.transaction(async (transaction) => {
      await Author.create({ name: "Ann" }, { transaction });
      check("not committed", await other.Author.count(), 0);
      throw thrown;
    }),
  );
  check("rolled back", await Author.count(), 0);
  for (const isolationLevel of Object.values(Transaction.ISOLATION_LEVELS)) {
    await rolledBack((thrown) =>
      db.transaction({ isolationLevel }, async (transaction) => {
        await Author.create({ name: "Ann" }, { transaction });
        throw thrown;
      }),
    );
  }
  const transaction = await db.transaction();
  const ann = await Author.create({ name: "Ann" }, { transaction });
  await rolledBack((thrown) =>
    db.transaction({ transaction }, async (inner) => {
      await Author.create({ name: "Bob" }, { transaction: inner });
      throw thrown;
    }),
  );
  await fails(1062, () => db.transaction({ transaction }, (inner) => Author.create({ name: "Ann" }, { transaction: inner })));
  await db.transaction({ transaction }, (inner) => Author.create({ name: "Cid", alive: false }, { transaction: inner }));
  await transaction.commit();
  const names = async (where) => (await other.Author.findAll({ where, order: ["name"] })).map((a) => a.name);
  check("the outer transaction stays", await names(), ["Ann", "Cid"]);

  await fails(1062, () => Author.create({ name: "Ann" }));
  await fails(1048, () => Author.create({ name: null }, { validate: false }));
  await fails(1146, () => db.query("select * from missing"));
  await fails(1054, () => Author.findAll({ where: { missing: 1 } }));
  await fails(1452, () => Book.create({ title: "none", authorId: 99 }));
  await fails(1264, () => Author.create({ name: "Dan", low: -2147483649 }));

  await ann.update(values);
  const again = (await other.Author.findByPk(ann.id)).get();
  check("types", Object.fromEntries(Object.keys(values).map((k) => [k, again[k]])), values);
  check("a boolean", [again.alive, await names({ alive: false })], [true, ["Cid"]]);
  const { data, nothing, ...rest } = values;
  check("found by the values", await names({ ...rest, nothing: { [Op.is]: null } }), ["Ann"]);
  check("within JSON", await names({ "data.ключ": values.data["ключ"] }), ["Ann"]);
  const [[prepared]] = await db.query("select big, price, bytes from authors where name = $1", { bind: ["Ann"] });
  check("prepared", prepared, { big: values.big, price: values.price, bytes: values.bytes });

  const book = await ann.createBook({ title: "a" });
  await ann.createBook({ title: "b", kind: "poem" });
  await book.setTags(await Tag.bulkCreate([{ name: "x" }, { name: "y" }]));
  const loaded = await other.Author.findOne({ where: { name: "Ann" }, include: { model: other.Book, include: other.Tag }, order: [[other.Book, "title"], [other.Book, other.Tag, "name"]] });
  check("loaded", loaded.books.map((b) => [b.title, b.kind, b.tags.map((t) => t.name)]), [["a", "novel", ["x", "y"]], ["b", "poem", []]]);
  check("limited", (await Author.findAll({ include: Book, limit: 1, order: ["name"] })).map((a) => a.books.length), [2]);
  const counted = await Author.findAll({ attributes: ["name", [db.fn("count", db.col("books.id")), "n"]], include: { model: Book, attributes: [] }, group: ["author.name"], order: ["name"], raw: true });
  check("counted", counted, [{ name: "Ann", n: 2 }, { name: "Cid", n: 0 }]);
  check("found or created", (await Author.findOrCreate({ where: { name: "Cid" } }))[1], false);

  await Author.upsert({ name: "Cid", low: 1 });
  await Author.bulkCreate([{ name: "Cid", high: 2 }, { name: "Eve" }], { updateOnDuplicate: ["high"] });
  const cid = await Author.findOne({ where: { name: "Cid" } });
  check("upserted", [cid.low, cid.high, await names()], [1, 2, ["Ann", "Cid", "Eve"]]);
  await cid.increment({ low: 5 });
  check("incremented", (await cid.reload()).low, 6);
  await db.transaction(async (t) => {
    check("locked", (await Author.findByPk(cid.id, { transaction: t, lock: t.LOCK.UPDATE })).name, "Cid");
  });

  const one = open();
  const mine = async () => (await one.query("select connection_id() as id", { type: "SELECT" }))[0].id;
  const before = await mine();
  await kill(before);
  check("another connection", (await mine()) !== before, true);

  await ann.destroy();
  check("deleted with its books", await Book.count(), 0);
  await db.drop();
  check("dropped", await db.getQueryInterface().showAllTables(), []);
  await Promise.all([db.close(), one.close(), other.Author.sequelize.close()]);
});
