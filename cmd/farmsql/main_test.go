package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli/clitest"
)

// execute runs the command line in this process.
func execute(_ *testing.T, in string, args ...string) (status int, stdout, stderr string) {
	return clitest.Program(run).Execute(in, args...)
}

// Every help text about data states what survives a power cut.
func TestHelpStatesTheContract(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"serve", "--help"}, {"doctor", "--help"}, {"check", "--help"}, {"save", "--help"}, {"restore", "--help"}, {"sql", "--help"}, {"demo", "--help"}} {
		status, out, _ := execute(t, "", args...)
		if text := strings.Join(strings.Fields(out), " "); status != 0 || !strings.Contains(text, "survive a killed process") || !strings.Contains(text, "NOT A POWER CUT") {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
	}
}

func TestHelpHasEveryFlag(t *testing.T) {
	_, out, _ := execute(t, "", "serve", "--help")
	for _, flag := range []string{"--data", "--listen", "--machines", "--replicas", "--workers", "--region-size", "--log-size",
		"--result-buffer", "--statement-memory", "--max-packet", "--max-connections", "--tls-cert", "--tls-key", "--require-tls", "--saves", "--trust",
		"--log-level", "--log-format", "--cluster", "--machine-id", "--failure-domain", "--transport", "--shared-folder", "--lease", "--recovery-pace"} {
		line := regexp.MustCompile(`(?m)^\s+(-\w, )?` + flag + `\S*\s+\S+`).FindString(out)
		if line == "" {
			t.Errorf("%s is not documented in\n%s", flag, out)
		}
	}
}

func TestVersion(t *testing.T) {
	status, out, _ := execute(t, "", "version")
	if status != 0 || !regexp.MustCompile(`^farmsql \S.* \(go1\.\d+`).MatchString(out) {
		t.Errorf("status %d: %q", status, out)
	}
}

func shellArgs(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"sql", "--data", filepath.Join(t.TempDir(), "what? data")}, more...)
}

func TestShellScript(t *testing.T) {
	status, out, errs := execute(t, `
create database d; use d;
create table t (a int primary key, b varchar(20));
insert into t values (1, 'one'), (2, null), -- comment; here
  (3, 'ta	b');
select * from t order by a;
select count(*) n from t\G
`, shellArgs(t)...)
	want := "a\tb\n1\tone\n2\tNULL\n3\tta\\tb\n*************************** 1. row ***************************\nn: 3\n"
	if status != 0 || out != want || errs != "" {
		t.Errorf("status %d\n%q\nwant\n%q\n%s", status, out, want, errs)
	}
}

func TestShellStopsAtAnError(t *testing.T) {
	script := "create database d;\n\nselect nope;\nselect 'after' x;"
	status, out, errs := execute(t, script, shellArgs(t)...)
	if status != 1 || out != "" || !strings.HasPrefix(errs, "ERROR 1054 (42S22) at line 3: ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	status, out, errs = execute(t, script, shellArgs(t, "--force")...)
	if status != 1 || out != "x\nafter\n" || !strings.HasPrefix(errs, "ERROR 1054") {
		t.Errorf("forced: status %d, %q, %q", status, out, errs)
	}
}

func TestShellExecute(t *testing.T) {
	status, out, errs := execute(t, "", shellArgs(t, "--format", "table", "-e", "select 1 a, 'x' B", "-e", "select 2")...)
	want := "+---+---+\n| a | B |\n+---+---+\n| 1 | x |\n+---+---+\n+---+\n| 2 |\n+---+\n| 2 |\n+---+\n"
	if status != 0 || out != want {
		t.Errorf("status %d\n%s\nwant\n%s\n%s", status, out, want, errs)
	}
}

func TestShellKeepsItsSession(t *testing.T) {
	status, out, errs := execute(t, "create database d; use d; create table t (a int); set @x = 5; begin; insert into t values (@x); rollback; select @x, (select count(*) from t) n;", shellArgs(t)...)
	if status != 0 || out != "@x\tn\n5\t0\n" {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
}

func TestShellWithoutServer(t *testing.T) {
	status, _, errs := execute(t, "", "sql", "--address", "127.0.0.1:1", "-e", "select 1")
	if status != 1 || !strings.Contains(errs, "cannot connect to 127.0.0.1:1") || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, %q", status, errs)
	}
}

func TestReturnsRows(t *testing.T) {
	for statement, want := range map[string]bool{
		"select 1": true, "SELECT 1": true, "(select 1) union (select 2)": true, "show tables": true, "with q as (select 1) select * from q": true,
		"insert into t values (1)": false, "update t set a = 1": false, "create table selects (a int)": false, "": false, "desc t": true, "explain select 1": true,
	} {
		if returnsRows(statement) != want {
			t.Errorf("%q: %v", statement, !want)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	h := loadHistory()
	for _, line := range []string{"select 1;", "", "create user u identified by 'secret';", "select 2;"} {
		h.Add(line)
	}
	again := loadHistory()
	if again.Len() != 2 || again.At(0) != "select 2;" || again.At(1) != "select 1;" {
		t.Errorf("%q", again.lines)
	}
	for range historyLinesMax + 10 {
		again.Add("x")
	}
	if again.Len() != historyLinesMax {
		t.Errorf("%d lines", again.Len())
	}
}
