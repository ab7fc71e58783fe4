package fast

// A Prepared is a prepared statement whose text has been read once, so that its executions find its compiled form
// without reading the text again. It belongs to a session, and its zero value is ready to use.
type Prepared struct {
	stmt *Compiled // nil before the text has been read
	// database and settings are those under which stmt was found.
	database, settings string
	// values are the literals of the text, and the bound values of an execution at the indexes at.
	values []Value
	at     []int
}

// Prepared returns what Compiled returns for a prepared statement.
func (s *Session) Prepared(p *Prepared, query string, bound []Value) Execution {
	if p.stmt == nil || !s.compiles() || len(bound) != len(p.at) || p.settings != s.Settings().Key || p.database != s.GetCurrentDatabase() {
		return s.readPrepared(p, query, bound)
	}
	s.values = append(s.values[:0], p.values...)
	for i, v := range bound {
		v.IsBound = true
		s.values[p.at[i]] = v
	}
	return Execution{Compiled: p.stmt, Values: s.values}
}

// readPrepared is Prepared for an execution that reads the text.
func (s *Session) readPrepared(p *Prepared, query string, bound []Value) Execution {
	*p = Prepared{}
	x := s.Compiled(query, true, bound)
	if x.Compiled == nil {
		return x
	}
	p.stmt, p.database, p.settings = x.Compiled, s.GetCurrentDatabase(), s.Settings().Key
	for i, v := range x.Values {
		if v.IsBound {
			p.at = append(p.at, i)
			v = Value{} // it may be long
		}
		p.values = append(p.values, v)
	}
	return x
}
