package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// checkFiles compares the limit of open files with what serve needs. The Go runtime has raised the
// limit as far as it may.
func checkFiles(h Host, p Plan) Finding {
	now, err := h.Limit(unix.RLIMIT_NOFILE)
	if err != nil {
		return notExamined(err.Error())
	}
	found := fmt.Sprintf("%s may be open, and serve needs %d with all its clients", limitText(now), p.Files)
	mend := fmt.Sprintf("LimitNOFILE=%d in the service's unit; or ulimit -Hn %d as root; or fewer --max-connections", p.Files, p.Files)
	switch {
	case now < p.FilesLeast:
		return problem(found, "serve does not start", mend)
	case now < p.Files:
		return warning(found, "fewer clients may be connected than --max-connections says", mend)
	}
	return good(found)
}
