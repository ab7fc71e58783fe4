package test

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// python is the interpreter for which the distribution has packages.
const python = "/usr/bin/python3"

// drivers are programs, one for each driver for MySQL of other languages. They try transactions,
// rollback, savepoints, errors, types in both directions, and reconnecting. Each gets the host, the
// port and a database, and prints ok.
var drivers = []struct {
	name string
	// probe succeeds if everything that command needs is installed. Both run in testdata/drivers.
	probe, command []string
}{
	{"PyMySQL", []string{python, "-c", "import pymysql"}, []string{python, "dbapi.py", "pymysql"}},
	{"mysqlclient", []string{python, "-c", "import MySQLdb"}, []string{python, "dbapi.py", "MySQLdb"}},
	{"SQLAlchemy", []string{python, "-c", "import sqlalchemy, pymysql"}, []string{python, "alchemy.py"}},
	{"Django", []string{python, "-c", "import django, MySQLdb"}, []string{python, "orm.py"}},
	{"Perl", []string{"perl", "-MDBD::mysql", "-e", "1"}, []string{"perl", "dbi.pl"}},
	{"PHP", []string{"php", "-r", "exit(extension_loaded('pdo_mysql') && extension_loaded('mysqli') ? 0 : 1);"}, []string{"php", "pdo.php"}},
	{"JDBC", []string{"javac", "-version"}, []string{"java", "-cp", "/usr/share/java/mariadb-java-client.jar", "Jdbc.java"}},
	{"Knex", npm("knex"), []string{"node", "../node/knex.js"}},
	{"Sequelize", npm("sequelize"), []string{"node", "../node/sequelize.js"}},
	{"Drizzle", npm("drizzle-orm"), []string{"node", "../node/drizzle.js"}},
	{"TypeORM", npm("typeorm"), []string{"node", "../node/typeorm.js"}},
	{"gorm", []string{"go", "-C", "../gorm", "build", "-o", os.DevNull, "."}, []string{"go", "-C", "../gorm", "run", "."}},
}

// npm is the probe for a package that npm has installed, as .ci/run makes it do.
func npm(name string) []string {
	return []string{"node", "-e", "for (const p of ['mysql2', '" + name + "']) require('../node/node_modules/' + p)"}
}

func TestDrivers(t *testing.T) {
	s := start(t, t.TempDir())
	host, port := s.hostPort()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			if _, err := exec.LookPath("npm"); err != nil && d.probe[0] == "node" {
				t.Skip("npm is not installed") // CI says so, too, and goes on
			}
			probe := exec.Command(d.probe[0], d.probe[1:]...)
			probe.Dir = "testdata/drivers"
			if out, err := probe.CombinedOutput(); err != nil {
				if os.Getenv("REQUIRE_CLIENTS") != "" {
					t.Fatalf("%v: %v\n%s", d.probe, err, out)
				}
				t.Skipf("%v: %v", d.probe, err)
			}
			s.open(t, d.name)
			ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, d.command[0], append(d.command[1:len(d.command):len(d.command)], host, port, d.name)...)
			cmd.Dir = probe.Dir
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
				t.Errorf("%v: %v\n%s", cmd.Args, err, out)
			}
		})
	}
}
