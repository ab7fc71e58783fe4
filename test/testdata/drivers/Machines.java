import java.sql.*;

/**
 * Inserts numbers into a table of a cluster, and goes on at another machine when one fails, which MariaDB's
 * Connector/J looks for itself. usage: Machines.java HOST:PORT,HOST:PORT DATABASE CLIENT
 *
 * Prints each number that is in the table, until its standard input ends, and then ok.
 */
class Machines {
	static volatile boolean over;

	public static void main(String[] args) throws Exception {
		String url = "jdbc:mariadb:sequential://" + args[0] + "/" + args[1] + "?user=root&connectTimeout=1000&socketTimeout=20000";
		Thread reader = new Thread(() -> {
			try {
				while (System.in.read() >= 0) {}
			} catch (java.io.IOException e) {
				// ends as well
			}
			over = true;
		});
		reader.setDaemon(true);
		reader.start();
		Connection c = null;
		boolean doubtful = false;
		for (int number = 0; !over; ) {
			try {
				if (c == null) {
					c = DriverManager.getConnection(url);
				}
				if (!doubtful || !isThere(c, args[2], number)) {
					insert(c, args[2], number);
				}
				System.out.println(number++);
				doubtful = false;
			} catch (SQLException e) {
				System.out.println("error " + e.getErrorCode() + " " + e.getMessage().replace('\n', ' '));
				doubtful = true;
				if (c != null && !c.isValid(1)) {
					c.close();
					c = null;
				}
				Thread.sleep(50);
			}
		}
		System.out.println("ok");
	}

	static boolean isThere(Connection c, String client, int number) throws SQLException {
		try (PreparedStatement p = c.prepareStatement("select 1 from numbers where client = ? and number = ?")) {
			p.setString(1, client);
			p.setInt(2, number);
			try (ResultSet r = p.executeQuery()) {
				return r.next();
			}
		}
	}

	static void insert(Connection c, String client, int number) throws SQLException {
		try (PreparedStatement p = c.prepareStatement("insert into numbers values (?, ?)")) {
			p.setString(1, client);
			p.setInt(2, number);
			p.executeUpdate();
		}
	}
}
