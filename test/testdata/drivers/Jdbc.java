import java.math.BigDecimal;
import java.sql.*;
import java.util.Arrays;

/**
 * Transactions, errors, types and reconnecting through JDBC with MariaDB's Connector/J.
 * usage: Jdbc.java HOST PORT DATABASE
 */
class Jdbc {
	static String url;

	interface Work {
		void run() throws SQLException;
	}

	static void check(String what, Object got, Object want) {
		if (!want.equals(got)) {
			throw new AssertionError(what + ": " + got + ", want " + want);
		}
	}

	static void fails(int number, Work w) {
		try {
			w.run();
		} catch (SQLException e) {
			check("error", e.getErrorCode(), number);
			return;
		}
		throw new AssertionError("error " + number + " was expected");
	}

	static int count(Connection c) throws SQLException {
		try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("select count(*) from t")) {
			r.next();
			return r.getInt(1);
		}
	}

	static void insert(Connection c, int id, String text) throws SQLException {
		try (PreparedStatement p = c.prepareStatement("insert into t values (?, ?, ?, ?, ?, ?)")) {
			p.setInt(1, id);
			p.setString(2, text);
			p.setBigDecimal(3, new BigDecimal("-12.50"));
			p.setBytes(4, new byte[] {0, '\'', '\\', -1});
			p.setTimestamp(5, Timestamp.valueOf("2024-02-29 23:59:59.123"));
			p.setLong(6, Long.MIN_VALUE);
			check("rows", p.executeUpdate(), 1);
		}
	}

	static void all(String options) throws SQLException {
		Connection one = DriverManager.getConnection(url + options), two = DriverManager.getConnection(url + options);
		Statement s = one.createStatement();
		s.execute("drop table if exists t");
		s.execute("create table t (id int primary key, s varchar(50) not null, d decimal(10,2), b varbinary(20), at datetime(3), i bigint)");
		one.setAutoCommit(false);
		insert(one, 1, "z\u00e4\ud83d\ude00'");
		check("not committed", count(two), 0);
		one.rollback();
		check("rolled back", count(one), 0);
		insert(one, 1, "z\u00e4\ud83d\ude00'");
		Savepoint a = one.setSavepoint("a");
		s.executeUpdate("delete from t");
		one.rollback(a);
		one.commit();
		try (PreparedStatement p = two.prepareStatement("select * from t where id = ?")) {
			p.setInt(1, 1);
			ResultSet r = p.executeQuery();
			r.next();
			check("s", r.getString("s"), "z\u00e4\ud83d\ude00'");
			check("d", r.getBigDecimal("d"), new BigDecimal("-12.50"));
			check("b", Arrays.toString(r.getBytes("b")), "[0, 39, 92, -1]");
			check("at", r.getTimestamp("at"), Timestamp.valueOf("2024-02-29 23:59:59.123"));
			check("i", r.getLong("i"), Long.MIN_VALUE);
		}
		fails(1062, () -> insert(one, 1, "x"));
		fails(1048, () -> insert(one, 2, null));
		fails(1146, () -> s.executeQuery("select * from missing"));
		try (PreparedStatement p = one.prepareStatement("insert into t (id, s) values (?, ?)")) {
			for (int i = 10; i < 110; i++) {
				p.setInt(1, i);
				p.setString(2, "row " + i);
				p.addBatch();
			}
			check("batch", p.executeBatch().length, 100);
		}
		one.commit();
		check("after errors", count(two), 101);
		s.execute("create table k (id bigint primary key auto_increment, v int)");
		s.executeUpdate("insert into k (v) values (7), (8)", Statement.RETURN_GENERATED_KEYS);
		ResultSet keys = s.getGeneratedKeys();
		keys.next();
		check("generated key", keys.getLong(1), 1L);
		s.execute("drop table k");
		ResultSet columns = two.getMetaData().getColumns(two.getCatalog(), null, "t", null);
		StringBuilder names = new StringBuilder();
		while (columns.next()) {
			names.append(columns.getString("COLUMN_NAME")).append(columns.getInt("DATA_TYPE")).append(' ');
		}
		check("columns", names.toString(), "id4 s12 d3 b-3 at93 i-5 ");
		ResultSet r = s.executeQuery("select connection_id()");
		r.next();
		two.createStatement().execute("kill " + r.getInt(1));
		try {
			s.executeQuery("select 1");
			throw new AssertionError("a killed connection answers");
		} catch (SQLException e) {
			check("SQL state", e.getSQLState().substring(0, 2), "08");
		}
		try (Connection again = DriverManager.getConnection(url + options)) {
			check("reconnected", count(again), 101);
		}
		two.close();
	}

	public static void main(String[] args) throws Exception {
		Class.forName("org.mariadb.jdbc.Driver");
		url = "jdbc:mariadb://" + args[0] + ":" + args[1] + "/" + args[2] + "?user=root";
		all("");
		all("&useServerPrepStmts=true");
		all("&rewriteBatchedStatements=true");
		System.out.println("ok");
	}
}
