package enginetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// childVariable is set for a process that runs the suite.
const childVariable = "FARMSQL_SUITE_CHILD"

// byNight is why a test is not run by day.
const byNight = "nightly: set FARMSQL_NIGHTLY=1"

// ours marks a line of a child's that says how much our lists have left out, and why.
const ours = "left out by us: "

var (
	resultLine  = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \(`)
	runningLine = regexp.MustCompile(`^=== (?:RUN|NAME|CONT) +(\S+)`)
	messageOf   = regexp.MustCompile(`^ *\w+\.go:\d+: (.*)`)
	noise       = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME)| *--- (PASS|SKIP))`)
	oursLine    = regexp.MustCompile("^" + ours + `(\d+): (.*)`)
)

// runsInChild runs the test in a process of its own, whose output it reads, and returns
// true; false in that process. No test is told what the suite skips by itself: only the output shows
// it.
func runsInChild(t *testing.T) bool {
	if os.Getenv(childVariable) != "" {
		return false
	}
	pattern := "^" + t.Name() + "$"
	if _, parts, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		pattern += "/" + parts
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern, "-test.v=true")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	if err != nil {
		said := strings.Join(slices.DeleteFunc(slices.Clone(lines), noise.MatchString), "\n")
		t.Errorf("%v\n%s", err, said[:min(len(said), 1<<17)])
	}
	showLeftOut(t, lines)
	return true
}

// showLeftOut counts what a child has run and not run, and shows the latter by reason, each
// as a test that is skipped.
func showLeftOut(t *testing.T, lines []string) {
	counts, reasons := make(map[string]int), make(map[string]int)
	messages, running := make(map[string]string), "" // what a test has printed last, and which one does
	for _, line := range lines {
		if m := oursLine.FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			reasons[m[2]] += n
		}
		if m := messageOf.FindStringSubmatch(line); m != nil {
			messages[running] = m[1]
			continue
		}
		if m := runningLine.FindStringSubmatch(line); m != nil {
			running = m[1]
			continue
		}
		m := resultLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		counts[m[1]]++
		if m[1] == "SKIP" {
			if why := whySkipped(m[2], messages[m[2]]); why != "" {
				reasons[why]++
			}
		}
	}
	if counts["PASS"] == 0 {
		t.Error("nothing passed")
	}
	for _, why := range slices.Sorted(keys(reasons)) {
		t.Run("left out", func(t *testing.T) { t.Skipf("%d: %s", reasons[why], why) })
	}
	t.Logf("%d passed, %d failed, %d skipped", counts["PASS"], counts["FAIL"], counts["SKIP"])
}

// whySkipped says why a test was skipped, if that is not among what our lists leave out of
// tests, which are counted where they are asked for.
func whySkipped(name, message string) string {
	if message == "" {
		message = "it does not say why"
	}
	if strings.Count(name, "/") == 1 { // one of our tests
		return "as a whole: " + message
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	for _, s := range slices.Concat(skips, collationSkips) {
		if query := strings.Join(strings.Fields(s.query), "_"); strings.Contains(name, query) || strings.Contains(query, last) {
			return ""
		}
	}
	// The rest of such a message is the query.
	message, _, _ = strings.Cut(message, "Skipping query ")
	return strings.TrimSuffix("by go-mysql-server: "+message, ": ")
}

// say prints what our lists have left out of a test, for the parent process.
func (h *harness) say() {
	for s, n := range h.used {
		fmt.Printf("%s%d: %s\n", ours, n, s.why)
	}
}
