package sql

import (
	"fmt"
	"strings"
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// go-mysql-server knows MySQL's variables and lets all of them be set, most without any
// effect. The table in this file says what setting each one does here. A variable that
// go-mysql-server lets a client change, but that is not in the table, cannot be set at all.

// A variableClass is what SET does to a variable.
type variableClass uint8

const (
	// constant: the variable can be set only to its present value, because clients restore
	// values that they have read, and set values that they take for defaults.
	constant variableClass = iota
	// works: setting it has the effect that it has in MySQL.
	works
	// ignored: it tells MySQL how to spend memory, time or files, and no result depends on it.
	// Setting it succeeds, with a warning.
	ignored
)

// classes lists the variables by what SET does to them, with the reason given to the client. A
// variable that cannot be changed while MySQL runs cannot be changed here either (error 1238).
var classes = []struct {
	class  variableClass
	reason string
	names  string
}{
	{works, "", `autocommit character_set_client character_set_connection character_set_database character_set_results
		character_set_server collation_connection collation_database collation_server disable_merge_join
		foreign_key_checks group_concat_max_len innodb_lock_wait_timeout local_infile lock_warnings long_query_time max_error_count
		max_execution_time read_only regexp_buffer_size show_external_procedures slow_query_log sql_mode sql_notes
		sql_select_limit strict_mysql_compatibility super_read_only time_zone timestamp transaction_read_only tx_read_only`},
	// Every isolation level is implemented as the strictest, and keys are always checked.
	{works, "", `transaction_isolation tx_isolation unique_checks`},

	{ignored, "farmsql has no buffer or cache of this kind", `big_tables bulk_insert_buffer_size histogram_generation_max_mem_size
		innodb_buffer_pool_size join_buffer_size key_buffer_size key_cache_age_threshold key_cache_block_size
		key_cache_division_limit max_heap_table_size max_length_for_sort_data myisam_data_pointer_size
		myisam_max_sort_file_size myisam_repair_threads myisam_sort_buffer_size myisam_stats_method myisam_use_mmap
		net_buffer_length optimizer_trace_max_mem_size parser_max_mem_size preload_buffer_size query_cache_size
		range_optimizer_max_mem_size read_buffer_size read_rnd_buffer_size schema_definition_cache select_into_buffer_size
		sort_buffer_size stored_program_cache stored_program_definition_cache table_definition_cache table_open_cache
		tablespace_definition_cache temptable_max_mmap temptable_max_ram temptable_use_mmap thread_cache_size
		tmp_table_size transaction_prealloc_size host_cache_size`},
	{ignored, "farmsql plans by rules and statistics of its own", `eq_range_index_dive_limit innodb_stats_auto_recalc
		join_complexity_limit max_seeks_for_key optimizer_prune_level optimizer_search_depth
		secondary_engine_cost_threshold sql_buffer_result`},
	{ignored, "connections are not ended for being idle or slow", `interactive_timeout net_read_timeout net_retry_count
		net_write_timeout slow_launch_time wait_timeout`},
	{ignored, "information_schema is always up to date", "information_schema_stats_expiry"},
	{ignored, "innodb_lock_wait_timeout bounds how long a statement waits", "lock_wait_timeout"},
	{ignored, "procedures may call themselves up to 255 deep", "max_sp_recursion_depth"},
	{ignored, "there are no table locks to wait for", `concurrent_insert low_priority_updates max_write_lock_count`},
	{ignored, "messages are in English", "lc_messages"},
	{ignored, "every table is made anew in the way that its change needs", "old_alter_table"},

	{constant, "start farmsql with --max-connections to change it", "max_connections"},
	{constant, "start farmsql with --max-packet to change it", "max_allowed_packet"},
	{constant, "start farmsql with --require-tls to change it", "require_secure_transport"},
	{constant, "start farmsql with --tls-cert and --tls-key to change it", `admin_ssl_ca admin_ssl_capath admin_ssl_cert
		admin_ssl_cipher admin_ssl_crl admin_ssl_crlpath admin_ssl_key admin_tls_ciphersuites admin_tls_version ssl_ca
		ssl_capath ssl_cert ssl_cipher ssl_crl ssl_fips_mode ssl_key tls_ciphersuites tls_version`},
	{constant, "farmsql has no log of statements; slow_query_log writes slow ones to the server's log", `general_log
		general_log_file log_raw sql_log_off`},
	{constant, "slow statements go to the server's log, by long_query_time only", `log_output log_queries_not_using_indexes
		log_slow_admin_statements log_slow_extra log_throttle_queries_not_using_indexes min_examined_row_limit
		slow_query_log_file`},
	{constant, "the server's log goes to standard error", `dragnet.log_error_filter_rules log_error_services
		log_error_suppression_list log_error_verbosity log_syslog log_syslog_facility log_syslog_include_pid
		log_syslog_tag log_timestamps syseventlog.facility syseventlog.include_pid syseventlog.tag`},
	{constant, "farmsql has no binary log: machines of a cluster replicate memory; dump with --set-gtid-purged=OFF",
		`binlog_checksum binlog_expire_logs_seconds binlog_format binlog_row_image binlog_row_metadata
		enforce_gtid_consistency gtid_domain_id gtid_executed_compression_period gtid_mode gtid_next gtid_purged gtid_seq_no
		immediate_server_version log_bin log_replica_updates log_slave_updates max_binlog_size original_server_version
		pseudo_slave_mode rbr_exec_mode require_row_format server_id server_uuid skip_parallel_replication sql_log_bin`},
	{constant, "farmsql has no rules for passwords and no roles that are on by themselves", `activate_all_roles_on_login
		check_proxy_users default_password_lifetime generated_random_password_length mandatory_roles
		mysql_native_password_proxy_users partial_revokes password_history password_require_current
		password_reuse_interval print_identified_with_as_hex sha256_password_proxy_users validate_password.length
		validate_password.mixed_case_count validate_password.number_count validate_password.special_char_count`},
	{constant, "farmsql has no such limit", `connect_timeout max_connect_errors max_join_size max_points_in_geometry
		max_prepared_stmt_count max_sort_length max_user_connections regexp_stack_limit regexp_time_limit sql_big_selects
		sql_safe_updates`},
	{constant, "recursion ends with an error at a depth that cannot be changed", "cte_max_recursion_depth"},
	{constant, "farmsql keeps all tables in memory, in one storage engine", `default_storage_engine default_table_encryption
		default_tmp_storage_engine delay_key_write flush flush_time internal_tmp_disk_storage_engine
		internal_tmp_mem_storage_engine keep_files_on_create table_encryption_privilege_check use_secondary_engine
		show_create_table_skip_secondary_engine`},
	{constant, "farmsql keeps events and does not run them", "event_scheduler"},
	{constant, "", `auto_increment_increment auto_increment_offset automatic_sp_privileges avoid_temporal_upgrade
		block_encryption_mode character_set_filesystem check_constraint_checks completion_type debug_sync
		default_collation_for_utf8mb4 default_week_format delayed_insert_limit delayed_insert_timeout delayed_queue_size
		div_precision_increment end_markers_in_json explicit_defaults_for_timestamp ft_boolean_syntax
		init_connect inmemory_joins insert_id last_insert_id lc_time_names max_delayed_threads
		max_insert_delayed_threads new offline_mode optimizer_trace optimizer_trace_features optimizer_trace_limit
		optimizer_trace_offset protocol_compression_algorithms pseudo_thread_id query_cache_type rand_seed1
		resultset_metadata select_into_disk_sync select_into_disk_sync_delay session_track_gtids session_track_schema
		session_track_state_change session_track_system_variables session_track_transaction_info
		show_create_table_verbosity show_old_temporals sql_auto_is_null sql_if_exists sql_quote_show_create
		sql_require_primary_key sql_warnings system_versioning_insert_history thread_pool_high_priority_connection
		thread_pool_max_active_query_threads thread_pool_max_unused_threads thread_pool_prio_kickup_timer
		thread_pool_stall_limit updatable_views_with_limit windowing_use_high_precision`},
}

// A rule is what SET does to one variable, and why.
type rule struct {
	class  variableClass
	reason string
}

// rules maps a variable's name to its rule.
var rules = func() map[string]rule {
	all := make(map[string]rule)
	for _, c := range classes {
		for _, name := range strings.Fields(c.names) {
			all[name] = rule{c.class, c.reason}
		}
	}
	return all
}()

// checkCharset checks the value of a variable that is a character set or a collation.
func checkCharset(name, value string) error {
	switch {
	case strings.HasPrefix(name, "character_set_"):
		return compat.CheckCharset(value)
	case strings.HasPrefix(name, "collation_"):
		return compat.CheckCollation(value)
	}
	return nil
}

// mayBecome checks that a variable with the value old may be set to value. It warns if the
// change has no effect, and refuses it if a client may rely on the effect.
func mayBecome(ctx *gms.Context, v gms.SystemVariable, old, value any) error {
	if v.IsReadOnly() {
		return nil // go-mysql-server refuses this variable
	}
	r := rules[strings.ToLower(v.GetName())]
	switch r.class {
	case works:
		if strings.EqualFold(v.GetName(), gms.SqlModeSessionVar) && strings.Contains(asText(ctx, v, value), "no_backslash_escapes") {
			return myerr.WrongEscapes.New(value)
		}
		if err := checkCharset(strings.ToLower(v.GetName()), asText(ctx, v, value)); err != nil {
			return err
		}
		if strings.EqualFold(v.GetName(), "character_set_client") && !readAsUTF8(value) {
			ctx.Warn(mysql.ERNotSupportedYet, "Statements are read as UTF-8, whatever character_set_client is: what is no UTF-8 gets error 1366 where it is stored")
		}
		return nil
	case ignored:
		if !same(ctx, v, old, value) {
			ctx.Warn(mysql.ERNotSupportedYet, "Setting '%s' has no effect: %s", v.GetName(), r.reason)
		}
		return nil
	}
	if same(ctx, v, old, value) {
		return nil
	}
	reason := r.reason
	if reason == "" {
		reason = "farmsql knows no other"
	}
	return myerr.FixedVariable.New(v.GetName(), value, old, reason)
}

// readAsUTF8 reports whether text in a character set can be read as UTF-8.
func readAsUTF8(charset any) bool {
	name, ok := charset.(string)
	return !ok || strings.HasPrefix(strings.ToLower(name), "utf8") || strings.EqualFold(name, "ascii") || strings.EqualFold(name, "binary")
}

// same reports whether two values are equal once the variable has converted them.
func same(ctx *gms.Context, v gms.SystemVariable, a, b any) bool {
	return asText(ctx, v, a) == asText(ctx, v, b)
}

// asText returns the text of a value, after the variable has converted it. Values with the same text
// are equal.
func asText(ctx *gms.Context, v gms.SystemVariable, value any) string {
	if converted, _, err := v.GetType().Convert(ctx, value); err == nil {
		value = converted
	}
	if set, ok := v.GetType().(gms.SetType); ok {
		if bits, ok := value.(uint64); ok {
			if text, err := set.BitsToString(bits); err == nil {
				value = text
			}
		}
	}
	return strings.ToLower(fmt.Sprint(value))
}

// otherNames maps either name of a variable that has two names to the other name.
var otherNames = map[string]string{
	"transaction_read_only": "tx_read_only", "tx_read_only": "transaction_read_only",
	"transaction_isolation": "tx_isolation", "tx_isolation": "transaction_isolation",
}

// SetSessionVariable implements gms.Session.
func (s *Session) SetSessionVariable(ctx *gms.Context, name string, value any) error {
	name = strings.ToLower(name)
	v, _, ok := gms.SystemVariables.GetGlobal(name)
	if ok && !v.IsGlobalOnly() {
		now, err := s.GetSessionVariable(ctx, name)
		if err != nil {
			return err
		}
		if err := mayBecome(ctx, v, now, value); err != nil {
			return err
		}
	}
	if other, ok := otherNames[name]; ok {
		if err := s.Session.SetSessionVariable(ctx, other, value); err != nil {
			return err
		}
	}
	if err := s.Session.SetSessionVariable(ctx, name, value); err != nil {
		return wrongValue(name, value, err)
	}
	return nil
}

// globals are the process's variables as go-mysql-server keeps them; setting one applies the
// rules above.
type globals struct{ gms.SystemVariableRegistry }

// This runs once, before any engine exists: the registry belongs to the process, which may
// create several engines.
func init() {
	gms.SystemVariables = globals{gms.SystemVariables}
	gms.SystemVariables.AddSystemVariables([]gms.SystemVariable{store.LockWaitTimeout(), store.TimestampVariable()})
}

// A sessionMap has the values that system variables had after a number of changes.
type sessionMap struct {
	changes uint64
	values  map[string]gms.SystemVarValue
}

// sessionMaps keeps the latest sessionMap, and counts changes of global variables.
var sessionMaps struct {
	changes atomic.Uint64
	latest  atomic.Pointer[sessionMap]
}

// NewSessionMap implements gms.SystemVariableRegistry. Its callers share the map, and do not change it: go-mysql-server makes
// a session for each question whether a table is DUAL, and a copy of all variables takes longer than what it asks.
func (g globals) NewSessionMap() map[string]gms.SystemVarValue {
	changes := sessionMaps.changes.Load() // before the values are read, which may change meanwhile
	if m := sessionMaps.latest.Load(); m != nil && m.changes == changes {
		return m.values
	}
	m := &sessionMap{changes, g.SystemVariableRegistry.NewSessionMap()}
	sessionMaps.latest.Store(m)
	return m.values
}

// AddSystemVariables implements gms.SystemVariableRegistry.
func (g globals) AddSystemVariables(all []gms.SystemVariable) {
	g.SystemVariableRegistry.AddSystemVariables(all)
	sessionMaps.changes.Add(1)
}

// AssignValues implements gms.SystemVariableRegistry.
func (g globals) AssignValues(values map[string]any) error {
	defer sessionMaps.changes.Add(1)
	return g.SystemVariableRegistry.AssignValues(values)
}

// SetGlobal implements gms.SystemVariableRegistry.
func (g globals) SetGlobal(ctx *gms.Context, name string, value any) error {
	v, now, ok := g.GetGlobal(name)
	if !ok {
		return gms.ErrUnknownSystemVariable.New(name)
	}
	if err := mayBecome(ctx, v, now, value); err != nil {
		return err
	}
	defer sessionMaps.changes.Add(1)
	if name := strings.ToLower(name); name == readOnlyName || name == superReadOnlyName {
		return g.setReadOnly(ctx, name, value)
	}
	return wrongValue(name, value, g.SystemVariableRegistry.SetGlobal(ctx, name, value))
}

const (
	readOnlyName      = "read_only"
	superReadOnlyName = "super_read_only"
)

// changing is locked while read_only or super_read_only is being set.
var changing lockrank.Mutex[lockrank.Leaf]

// setReadOnly sets one of the two variables, and the other where it follows: super_read_only
// implies read_only.
func (g globals) setReadOnly(ctx *gms.Context, name string, value any) error {
	changing.Lock()
	defer changing.Unlock()
	if err := g.SystemVariableRegistry.SetGlobal(ctx, name, value); err != nil {
		return err
	}
	on := g.isOn(name)
	switch { // super_read_only is never on without read_only
	case name == readOnlyName && !on:
		name = superReadOnlyName
	case name == superReadOnlyName && on:
		name = readOnlyName
	}
	// In other cases name is set once more, which changes nothing.
	if err := g.SystemVariableRegistry.SetGlobal(ctx, name, on); err != nil {
		return err
	}
	switch {
	case g.isOn(superReadOnlyName):
		store.Writers.Store(store.WritersNobody)
	case g.isOn(readOnlyName):
		store.Writers.Store(store.WritersSuper)
	default:
		store.Writers.Store(store.WritersAll)
	}
	return nil
}

func (g globals) isOn(name string) bool {
	_, v, _ := g.GetGlobal(name)
	on, err := gms.ConvertToBool(nil, v)
	return on && err == nil
}
