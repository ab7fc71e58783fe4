package test

// A difference is a foreign test that fails with farmsql or is not run, with the reason. A name
// includes the parts of the test.
type difference struct{ suite, test, why string }

// leftOut are tests that are not run.
var leftOut = []difference{
	{"go-sql-driver", "TestConnectorReturnsTimeout", "asks for a host beyond this computer, which must not answer, and ends the whole program where it does"},
	{"go-sql-driver", "TestColumnsWithAlias", "fails, and ends the whole program: go-mysql-server tells clients the alias of a table in lower case"},
	{"go-sql-driver", "TestConcurrent", "opens as many connections as max_connections says beside those it has, unless the server is slow; it expects a text of 1040 that its driver does not make any more"},
}

// By design.
const (
	oneState      = "by design: strict serializability; what has read something that another has changed since ends with 1213, and no statement waits for a row"
	heldRows      = "by design: a statement's rows reach its client when all of it has ended well, those of a procedure that fails later do not"
	manyParameter = "by design: 65,528 parameters, and not 65,535 (docs/sql.md)"
	noBackslashes = "by design: NO_BACKSLASH_ESCAPES is refused, as a backslash is an escape always"
	ourOrder      = "by design: the order of utf8mb4_0900_ai_ci, where _ is before %; expects that of older collations"
	oursToo       = "fails with MariaDB 10.11 as well"
)

// What is missing.
const (
	noTimeDigits  = "missing: digits of TIME, which has six always; CAST of a text with a date AS TIME is NULL"
	noFunction    = "missing: CUME_DIST, NTH_VALUE"
	noPartIndex   = "missing: key parts that are expressions, beside others or with an order"
	noDoInBodies  = "missing: DO in the body of a procedure"
	noDescending  = "missing: descending indexes, which are accepted and ascending"
	noCharsets    = "missing: the collation that a client names when it logs in; only SET NAMES is heard"
	noFloatDigits = "missing: FLOAT(M,D), whose D is not kept, and whose M is an error beyond 127"
	noExistsValue = "missing: EXISTS as an operand"
	noUnion       = "missing: a UNION of SELECTs in parentheses with an order or a limit"
)

// Defects.
const (
	noDependence = "defect: ONLY_FULL_GROUP_BY refuses (1055) what depends on what is grouped by, where that is a subquery or JSON"
	outerTables  = "defect: a subquery within a subquery, or in HAVING, does not find tables or columns outside of it, or takes the outer aggregate for its own"
	charFunction = "defect: CHAR USING of several bytes"
	binaryLike   = "defect: LIKE BINARY of an expression ignores case"
	zoneGaps     = "defect: CONVERT_TZ of an hour that a zone has twice, or does not have"
	renameCase   = "defect: a column cannot be renamed to its own name in other case"
	doubleRows   = "defect: EXISTS over joins within an OR gives a row twice"
)

// differences are tests that fail.
var differences = []difference{
	{"go-sql-driver", "TestCollation/latin1_general_ci", noCharsets},
	{"go-sql-driver", "TestCollation/binary", noCharsets},
	{"go-sql-driver", "TestCollation/utf8mb4_unicode_ci", noCharsets},
	{"go-sql-driver", "TestCollation/cp1257_bin", noCharsets},
	{"go-sql-driver", "TestContextBeginIsolationLevel", oneState},
	{"go-sql-driver", "TestInsertRetrieveEscapedData", noBackslashes},
	{"go-sql-driver", "TestSQLInjection", noBackslashes},
	{"go-sql-driver", "TestDateTime", noTimeDigits},
	{"go-sql-driver", "TestInterruptBySignal", heldRows},
	{"go-sql-driver", "TestMultiResultSet", noDoInBodies},
	{"go-sql-driver", "TestPreparedManyCols", manyParameter},
	{"go-sql-driver", "TestRowsColumnTypes", noFloatDigits},

	{"gorm", "TestFloatColumnPrecision", noFloatDigits},

	{"Django", "aggregation.test_filter_argument.FilteredAggregateTests.test_filtered_reused_subquery", outerTables},
	{"Django", "aggregation.tests.AggregateTestCase.test_aggregation_nested_subquery_outerref", outerTables},
	{"Django", "aggregation_regress.tests.AggregationTests.test_annotation_disjunction", outerTables},
	{"Django", "annotations.tests.NonAggregateAnnotationTestCase.test_annotation_filter_with_subquery", outerTables},
	{"Django", "aggregation.tests.AggregateTestCase.test_group_by_exists_annotation", noDependence},
	{"Django", "aggregation.tests.AggregateTestCase.test_group_by_subquery_annotation", noDependence},
	{"Django", "annotations.tests.NonAggregateAnnotationTestCase.test_annotation_subquery_and_aggregate_values_chaining", noDependence},
	{"Django", "model_fields.test_jsonfield.TestQuerying.test_ordering_grouping_by_count", noDependence},
	{"Django", "datetimes.tests.DateTimesTests.test_datetimes_ambiguous_and_invalid_times", zoneGaps},
	{"Django", "db_functions.datetime.test_extract_trunc.DateFunctionWithTimeZoneTests.test_trunc_ambiguous_and_invalid_times", zoneGaps},
	{"Django", "db_functions.comparison.test_collate.CollateTests.test_collate_filter_ci", oursToo},
	{"Django", "db_functions.comparison.test_collate.CollateTests.test_language_collation_order_by", oursToo},
	{"Django", "expressions_window.tests.WindowFunctionTests.test_cume_dist", noFunction},
	{"Django", "expressions_window.tests.WindowFunctionTests.test_nth_returns_null", noFunction},
	{"Django", "expressions_window.tests.WindowFunctionTests.test_nthvalue", noFunction},
	{"Django", "db_functions.text.test_chr.ChrTests.test_non_ascii", charFunction},
	{"Django", "db_functions.text.test_chr.ChrTests.test_transform", charFunction},
	{"Django", "delete_regress.tests.DeleteLockingTest.test_concurrent_delete", oneState},
	{"Django", "get_or_create.tests.UpdateOrCreateTransactionTests.test_updates_in_transaction", oneState},
	{"Django", "select_for_update.tests.SelectForUpdateTests.test_nowait_raises_error_on_block", oneState},
	{"Django", "select_for_update.tests.SelectForUpdateTests.test_raw_lock_not_available", oneState},
	{"Django", "select_for_update.tests.SelectForUpdateTests.test_skip_locked_skips_locked_rows", oneState},
	{"Django", "transactions.tests.AtomicMySQLTests.test_implicit_savepoint_rollback", oneState},
	{"Django", "expressions.tests.BasicExpressionsTests.test_ticket_16731_startswith_lookup", binaryLike},
	{"Django", "lookup.tests.LookupTests.test_exact_exists", noExistsValue},
	{"Django", "queries.test_qs_combinators.QuerySetSetOperationTests.test_union_with_empty_qs", noUnion},
	{"Django", "lookup.tests.LookupTests.test_exclude", ourOrder},
	{"Django", "migrations.test_operations.OperationTests.test_rename_field_case", renameCase},
	{"Django", "auth_tests.test_models.UserWithPermTestCase.test_basic", doubleRows},
	{"Django", "schema.tests.SchemaTests.test_composite_func_index", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_composite_func_index_field_and_expression", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_func_index", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_func_index_collate", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_func_index_f", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_func_index_lookups", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_func_index_nondeterministic", noPartIndex},
	{"Django", "schema.tests.SchemaTests.test_order_index", noDescending},
}
