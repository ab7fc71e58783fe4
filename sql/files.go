package sql

import (
	"io"
	"os"
	"path/filepath"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
)

var _ gms.Expression = (*loadFile)(nil)

const secureFileName = "secure_file_priv"

// secureFilePriv is the variable that shows Options.Files: NULL if there is no folder.
func secureFilePriv(folder string) gms.SystemVariable {
	v := &gms.MysqlSystemVariable{Name: secureFileName, Scope: gms.GetMysqlScope(gms.SystemVariableScope_Global), Type: types.NewSystemStringType(secureFileName)}
	if folder != "" {
		v.Default = folder
	}
	return v
}

// usable refuses a statement that reads or writes a file of the server, unless the user has the
// FILE privilege and the file is in the folder Options.Files.
func (e *Engine) usable(ctx *gms.Context, path string) error {
	if !e.privileges.Has(ctx, gms.PrivilegeType_File) {
		return myerr.AccessDenied.New("FILE")
	}
	if !inFolder(e.opt.Files, path) {
		return myerr.OptionPrevents.New("--secure-file-priv")
	}
	return nil
}

// intoFile checks SELECT INTO OUTFILE and DUMPFILE as usable does.
func (e *Engine) intoFile(ctx *gms.Context, n *plan.Into) error {
	for _, path := range []string{n.Outfile, n.Dumpfile} {
		if path != "" {
			if err := e.usable(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// fromFile checks LOAD DATA as usable does, unless the file is on the client.
func (e *Engine) fromFile(ctx *gms.Context, n *plan.LoadData) error {
	if n.Local {
		return nil
	}
	return e.usable(ctx, n.File)
}

// inFolder reports whether a file, which need not exist, is in a folder or below it,
// after symbolic links are followed.
func inFolder(folder, path string) bool {
	if folder == "" {
		return false
	}
	folder, err := resolved(folder)
	if err != nil {
		return false
	}
	file, err := resolved(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(folder, file)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// resolved returns a path with the symbolic links in its existing part followed. A link
// to nothing is left as it is: no file is created through it.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if dir := filepath.Dir(path); os.IsNotExist(err) && dir != path {
		real, err = resolved(dir)
		return filepath.Join(real, filepath.Base(path)), err
	}
	return real, err
}

// A loadFile is LOAD_FILE. It returns NULL where go-mysql-server's version fails.
type loadFile struct {
	e    *Engine
	path gms.Expression
}

// loadFile returns LOAD_FILE for this engine.
func (e *Engine) loadFile() gms.Function {
	return gms.Function1{Name: "load_file", Fn: func(_ *gms.Context, path gms.Expression) gms.Expression { return &loadFile{e, path} }}
}

// Eval implements gms.Expression. It returns NULL for a file that the user may not
// read, or that is longer than a packet.
func (f *loadFile) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := f.path.Eval(ctx, row)
	if v == nil || err != nil {
		return nil, err
	}
	text, _, err := types.LongText.Convert(ctx, v)
	if err != nil {
		return nil, err
	}
	path, ok, err := gms.Unwrap[string](ctx, text)
	if err != nil || !ok || f.e.usable(ctx, path) != nil {
		return nil, err
	}
	limit, err := ctx.GetSessionVariable(ctx, "max_allowed_packet")
	if err != nil {
		return nil, err
	}
	if limit, _, err = types.Int64.Convert(ctx, limit); err != nil {
		return nil, err
	}
	content, ok := readFile(path, limit.(int64))
	if !ok {
		return nil, nil
	}
	return content, nil
}

// readFile returns the contents of a regular file that is not longer than limit.
func readFile(path string, limit int64) (content []byte, ok bool) {
	if at, err := os.Stat(path); err != nil || !at.Mode().IsRegular() {
		return nil, false // opening a pipe would block
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer func() { _ = file.Close() }()
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	return content, err == nil && int64(len(content)) <= limit
}

// Resolved implements gms.Expression.
func (f *loadFile) Resolved() bool { return f.path.Resolved() }

// String implements gms.Expression.
func (f *loadFile) String() string { return "LOAD_FILE(" + f.path.String() + ")" }

// Type implements gms.Expression.
func (f *loadFile) Type(*gms.Context) gms.Type { return types.LongBlob }

// IsNullable implements gms.Expression.
func (f *loadFile) IsNullable(*gms.Context) bool { return true }

// Children implements gms.Expression.
func (f *loadFile) Children() []gms.Expression { return []gms.Expression{f.path} }

// WithChildren implements gms.Expression.
func (f *loadFile) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(f, len(children), 1)
	}
	return &loadFile{f.e, children[0]}, nil
}
