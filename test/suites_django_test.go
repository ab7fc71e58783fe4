package test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The source package of Django: no binary package has the tests. .ci/run puts it into this place.
const (
	djangoArchive = "python-django_3.2.25.orig.tar.gz"
	debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg" // with which .ci/run has apt-get verify it
	djangoSum     = "7ca38a78654aee72378594d63e51636c04b8e28574f5505dff630895b5472777"
)

// djangoSmall are the parts of Django's tests that run each time.
var djangoSmall = []string{"basic", "transactions"}

// djangoWhole are the parts that run at night: all that use a database for more than having some
// rows. Each run has tables of its own, and only few of them, because it reads information_schema
// in full for each column.
var djangoWhole = [][]string{
	{
		"aggregation", "aggregation_regress", "annotations", "backends", "basic", "bulk_create", "constraints", "custom_columns", "custom_lookups",
		"custom_managers", "custom_methods", "custom_pk", "datatypes", "dates", "datetimes", "db_functions", "db_typecasts", "db_utils", "defer",
		"defer_regress", "delete", "delete_regress", "distinct_on_fields", "empty", "expressions", "expressions_case", "expressions_window", "extra_regress",
		"field_defaults", "field_subclassing", "filtered_relation",
	},
	{
		"fixtures", "fixtures_regress", "force_insert_update", "foreign_object", "from_db_value", "generic_relations", "generic_relations_regress",
		"get_earliest_or_latest", "get_object_or_404", "get_or_create", "indexes", "introspection", "known_related_objects", "lookup", "m2m_and_m2o",
		"m2m_intermediary", "m2m_multiple", "m2m_recursive", "m2m_regress", "m2m_signals",
	},
	{
		"m2m_through", "m2m_through_regress", "m2o_recursive", "managers_regress", "many_to_many", "many_to_one", "many_to_one_null", "max_lengths",
		"migrate_signals", "migration_test_data_persistence", "migrations", "migrations2", "model_enums", "model_fields", "model_indexes",
		"model_inheritance", "model_inheritance_regress", "model_meta", "model_options", "model_regress",
	},
	{
		"model_utils", "multiple_database", "mutually_referential", "nested_foreign_keys", "null_fk", "null_fk_ordering", "null_queries", "one_to_one",
		"or_lookups", "order_with_respect_to", "ordering", "pagination", "prefetch_related", "properties", "proxy_model_inheritance", "proxy_models",
		"queries", "queryset_pickle", "raw_query", "reserved_names", "reverse_lookup",
	},
	{
		"save_delete_hooks", "schema", "select_for_update", "select_related", "select_related_onetoone", "select_related_regress", "serializers", "signals",
		"string_lookup", "swappable_models", "timezones", "transaction_hooks", "transactions", "unmanaged_models", "update", "update_only_fields",
		"validation", "contenttypes_tests", "sessions_tests", "auth_tests", "cache",
	},
	{
		"inspectdb",
	},
}

func djangoPath() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return djangoArchive
	}
	return filepath.Join(cache, "farmsql", djangoArchive)
}

func djangoSource(*testing.T) string {
	archive, err := os.ReadFile(djangoPath())
	if err != nil {
		return fmt.Sprintf("the source of Django is not here, which .ci/run fetches: %v", err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(archive)); sum != djangoSum {
		return fmt.Sprintf("%s has SHA-256 %s, not %s", djangoPath(), sum, djangoSum)
	}
	if out, err := exec.Command(python, "-c", "import MySQLdb, asgiref, pytz, sqlparse").CombinedOutput(); err != nil {
		return fmt.Sprintf("what Django needs is not installed: %v: %s", err, out)
	}
	return ""
}

// djangoTests runs Django's tests with the same version of Django.
func djangoTests(t *testing.T, s *server, small bool) outcomes {
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", djangoPath(), "-C", dir, "--strip-components=1").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	settings, err := filepath.Abs(filepath.Join(goSuites, "django"))
	if err != nil {
		t.Fatal(err)
	}
	all := djangoWhole
	if small {
		all = [][]string{djangoSmall}
	}
	results := filepath.Join(dir, "results")
	for _, parts := range all {
		djangoPart(t, s, dir, settings, results, parts)
	}
	return djangoOutcomes(t, results)
}

// djangoPart runs some parts of Django's tests.
func djangoPart(t *testing.T, s *server, dir, settings, results string, parts []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, append([]string{"-W", "ignore", "runtests.py", "--settings=farmsql_settings", "--parallel=1", "--noinput"}, parts...)...)
	cmd.Dir = filepath.Join(dir, "tests")
	host, port := s.hostPort()
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+dir+":"+settings, "FARMSQL_HOST="+host, "FARMSQL_PORT="+port,
		"FARMSQL_RESULTS="+results, "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput() // fails if a test does
	said := string(out)
	if !strings.Contains(said, "\nRan ") {
		t.Fatalf("Django's tests %v did not end: %v\n%s", parts, err, said[max(0, len(said)-4000):])
	}
}

// djangoOutcomes reads what the runner of testdata/suites/django has written.
func djangoOutcomes(t *testing.T, path string) outcomes {
	o := outcomes{make(map[string]outcome), "."}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		o.byTest[e.Test] = outcome{e.Action, e.Output}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return o
}
