package doctor

// A Result is how a check ends.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warning Result = "warning" // farmsql runs, but slower, or with less safety, than it could
	Problem Result = "problem" // farmsql does not start, or must not be relied on
	// NotExamined means that the state is not known: the system does not tell it, or
	// tells it only to root.
	NotExamined Result = "not examined"
)

// A Finding is what a check has found.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Found  string `json:"found"`
	Costs  string `json:"costs,omitempty"` // what a warning or problem costs
	Mend   string `json:"mend,omitempty"`  // the command or setting that mends it
}

func good(found string) Finding { return Finding{Result: OK, Found: found} }

func warning(found, costs, mend string) Finding {
	return Finding{Result: Warning, Found: found, Costs: costs, Mend: mend}
}

func problem(found, costs, mend string) Finding {
	return Finding{Result: Problem, Found: found, Costs: costs, Mend: mend}
}

func notExamined(reason string) Finding { return Finding{Result: NotExamined, Found: reason} }
