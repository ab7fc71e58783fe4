// The parts that the programs for Node share. Each is called with HOST PORT DATABASE.
const { inspect, isDeepStrictEqual } = require("node:util");
const mysql = require("mysql2/promise");

const [host, port, database] = process.argv.slice(2);
// The driver gives a BIGINT beyond 2^53 as a string, others as numbers.
const options = { host, port: Number(port), user: "root", database, charset: "utf8mb4", timezone: "Z", supportBigNumbers: true };

// Values at the limits of their types, as they must come back.
const values = {
  low: -2147483648,
  high: 2147483647,
  big: "9223372036854775807",
  price: "-9999999999999999.1250",
  at: new Date("2024-02-29T23:59:59.123Z"),
  data: { a: [1, -2.5, null, true], "ключ": "z\u00e4\u{1f600}'\"\\" },
  bytes: Buffer.from(Array.from({ length: 256 }, (_, k) => k)),
  words: "z\u00e4\u{1f600}'\"\\\n\0%_",
  nothing: null,
};

function check(what, got, want) {
  if (!isDeepStrictEqual(got, want)) {
    throw new Error(`${what}: ${inspect(got, { depth: null })}, want ${inspect(want, { depth: null })}`);
  }
}

// fails demands MySQL's error number, which the driver's error has, however it is wrapped.
async function fails(number, run) {
  try {
    await run();
  } catch (e) {
    let cause = e;
    while (cause.errno === undefined && (cause.cause ?? cause.parent)) cause = cause.cause ?? cause.parent;
    check(`error (${e})`, cause.errno, number);
    return;
  }
  throw new Error(`error ${number} was expected`);
}

// rolledBack demands that run, a transaction, passes on what is thrown in it.
async function rolledBack(run) {
  const thrown = new Error("thrown in a transaction");
  try {
    await run(thrown);
  } catch (e) {
    if (e === thrown) return;
    throw e;
  }
  throw new Error("the transaction did not fail");
}

// kill ends a connection, from another one, and returns when the server knows it no more.
async function kill(id) {
  const c = await mysql.createConnection(options);
  await c.query(`kill ${Number(id)}`);
  for (let left = 1; left > 0; ) {
    [[{ left }]] = await c.query("select count(*) as `left` from information_schema.processlist where id = ?", [id]);
  }
  await c.end();
  await new Promise((resolve) => setTimeout(resolve, 50)); // for the end to arrive here
}

function main(run) {
  run().then(
    () => console.log("ok"),
    (e) => {
      console.error(e);
      process.exit(1);
    },
  );
}

module.exports = { options, values, check, fails, rolledBack, kill, main };
