package account

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// A shown is what a SHOW statement describes: a table with its columns or keys, a view, a trigger or an event.
// go-mysql-server shows each to users who have any privilege on its database, or any on all.
type shown struct {
	kind      string // the statement's type, as sqlparser has it, in lower case
	name      string
	databases []string // all that the statement names; none for the current one
}

// noteShown makes SHOW statements check the privileges on what they describe.
func noteShown(stmt sqlparser.Statement) {
	n, ok := stmt.(*sqlparser.Show)
	if !ok {
		return
	}
	x := shown{kind: strings.ToLower(n.Type), name: n.Table.Name.String()}
	switch x.kind {
	case sqlparser.CreateTableStr, sqlparser.IndexStr, "columns", "fields", sqlparser.CreateViewStr, sqlparser.CreateTriggerStr, sqlparser.CreateEventStr:
	default:
		return
	}
	names := []string{n.Table.DbQualifier.String(), n.Database}
	if n.ShowTablesOpt != nil {
		names = append(names, n.ShowTablesOpt.DbName)
	}
	for _, db := range names {
		if db != "" {
			x.databases = append(x.databases, db)
		}
	}
	n.Auth.Extra = x
}

// refuseShown refuses a SHOW statement to users without the privilege that MySQL asks for. Statements that name two
// databases need it in both.
func (p Privileges) refuseShown(ctx *gms.Context, x shown) error {
	if !p.catalog.MySQLDb.Enabled() {
		return nil
	}
	has := p.catalog.MySQLDb.UserActivePrivilegeSet(ctx)
	databases := x.databases
	if len(databases) == 0 {
		databases = []string{ctx.GetCurrentDatabase()}
	}
	for _, db := range databases {
		if db == "" || strings.EqualFold(db, "information_schema") {
			continue
		}
		if err := p.refuseShownIn(ctx, has, db, x); err != nil {
			return err
		}
	}
	return nil
}

// refuseShownIn is refuseShown for one database; has are the user's privileges.
func (p Privileges) refuseShownIn(ctx *gms.Context, has gms.PrivilegeSet, db string, x shown) error {
	hasInDB := has.Database(db)
	hasAll := func(t gms.PrivilegeType) bool { return has.Has(t) || hasInDB.Has(t) }
	hasOn := func(table string, t gms.PrivilegeType) bool { return hasAll(t) || hasInDB.Table(table).Has(t) }
	switch x.kind {
	case sqlparser.CreateEventStr:
		if !hasAll(gms.PrivilegeType_Event) {
			return gms.ErrDatabaseAccessDeniedForUser.New(userOf(ctx), db)
		}
	case sqlparser.CreateTriggerStr:
		if hasAll(gms.PrivilegeType_Trigger) {
			return nil
		}
		if table := p.tableOfTrigger(ctx, db, x.name); table == "" || !hasOn(table, gms.PrivilegeType_Trigger) {
			return myerr.AccessDenied.New("TRIGGER")
		}
	case sqlparser.CreateViewStr:
		if !hasOn(x.name, gms.PrivilegeType_ShowView) || !hasOn(x.name, gms.PrivilegeType_Select) {
			return gms.ErrTableAccessDeniedForUser.New(userOf(ctx), x.name)
		}
	default:
		if !seesIn(has, db, x.name) {
			return gms.ErrTableAccessDeniedForUser.New(userOf(ctx), x.name)
		}
	}
	return nil
}

// RefuseAnalyze refuses ANALYZE TABLE to users without the privileges to select from its tables and to insert into them.
func (p Privileges) RefuseAnalyze(ctx *gms.Context, n *plan.AnalyzeTable) error {
	for _, t := range n.Tables {
		of := gms.PrivilegeCheckSubject{Database: n.Db, Table: t.Name()}
		if in, ok := t.(gms.Databaseable); ok {
			of.Database = in.Database()
		}
		if !p.catalog.MySQLDb.UserHasPrivileges(ctx, gms.NewPrivilegedOperation(of, gms.PrivilegeType_Select, gms.PrivilegeType_Insert)) {
			return gms.ErrTableAccessDeniedForUser.New(userOf(ctx), t.Name())
		}
	}
	return nil
}

// tableOfTrigger returns the table of a trigger; "" if there is no such trigger, or if its text cannot be parsed.
func (p Privileges) tableOfTrigger(ctx *gms.Context, db, name string) string {
	found, err := p.catalog.Database(ctx, db)
	if err != nil {
		return ""
	}
	if privileged, ok := found.(mysql_db.PrivilegedDatabase); ok {
		found = privileged.Unwrap()
	}
	triggers, ok := found.(gms.TriggerDatabase)
	if !ok {
		return ""
	}
	all, err := triggers.GetTriggers(ctx)
	if err != nil {
		return ""
	}
	for _, t := range all {
		if strings.EqualFold(t.Name, name) {
			return tableOf(t)
		}
	}
	return ""
}

// tableOf returns the table of a trigger; "" if its text cannot be parsed.
func tableOf(t gms.TriggerDefinition) string {
	stmt, err := sqlparser.Parse(t.CreateStatement)
	if d, ok := stmt.(*sqlparser.DDL); ok && err == nil {
		return d.Table.Name.String()
	}
	return ""
}

// userOf returns the user of a statement as errors name users.
func userOf(ctx *gms.Context) string {
	c := ctx.Client()
	return "'" + c.User + "'@'" + c.Address + "'"
}
