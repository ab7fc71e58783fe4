package wire

import (
	"context"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/myerr"
)

// OverSQL returns a machine's SQL engine in the form that a Server runs.
func OverSQL(e *sql.Engine) Engine {
	return Engine{
		GMS:          e.GMS(),
		NewContext:   sql.NewContext,
		ShowStatusOf: e.ShowStatusOf,
		Refresh:      e.RefreshAccounts,
		NewSession: func(_ context.Context, c *mysql.Conn, addr string) (gms.Session, Session, error) {
			user, _ := c.UserData.(gms.MysqlConnectionUser)
			client := gms.Client{User: user.User, Address: user.Host, Capabilities: c.Capabilities}
			s := e.NewSession(addr, client, c.ConnectionID)
			return s, EndOf(s), nil
		},
	}
}

// EndOf returns a session over FaRM in the form in which a Server ends its statements.
func EndOf(s *sql.Session) Session { return farmSession{s} }

// farmSession implements Session for a session over FaRM.
type farmSession struct{ s *sql.Session }

var _ Session = farmSession{}

func (f farmSession) BeginStatement(st Statement) {
	f.s.Begin()
	f.s.SetForUpdate(st.Locking == LockUpdate)
	if st.Aside {
		f.s.SetAside()
	}
}

func (f farmSession) InTransaction() bool { return f.s.Explicit() }

// EndStatement ends the statement's transaction, or validates what an explicit one has
// read so far, before the client sees the outcome.
func (f farmSession) EndStatement(ctx context.Context, shows Shown, err error) error {
	f.s.SetForUpdate(false)
	defer f.s.TakeBack()
	// After a failed statement the engine still commits, with a cancelled context. That
	// commit fails, which is expected; but a conflict has to be reported.
	if commitErr := f.s.TakeCommitError(); commitErr != nil && (err == nil || myerr.IsConflict(commitErr)) {
		return commitErr
	}
	f.s.Within(ctx)
	validate := f.s.Validate // the statement's error may come from reads that are not valid
	if err == nil && shows == ShowsSuccess {
		validate = f.s.ValidateRecent
	}
	if lost := validate(); lost != nil {
		return lost
	}
	switch {
	case myerr.IsConflict(err):
		f.s.Abort()
	case f.s.Explicit():
	case err != nil:
		f.s.Abort()
	case f.s.GetTransaction() != nil:
		// The engine leaves transactions open after some statements, such as SHOW
		// WARNINGS.
		return f.s.CommitTransaction(gms.NewContext(ctx, gms.WithSession(f.s)), f.s.GetTransaction())
	}
	return err
}
