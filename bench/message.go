package bench

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/farmsql/farmsql/region"
)

// A cluster's process and its machines exchange JSON over the machines' standard streams, one
// object per line. A machine answers each command once, when it is done, except where the command's
// comment says otherwise. It also reports, without a command, that it has started.
//
//	          places          runOrder              (all are ready)
//	load      ------>    run ----------->   start!  ---------------->
//	          <------        <-----------           <----------------
//	                           ready                    part
type command struct {
	Do string `json:"do"`
	// Places are the objects near which all machines allocate, one for each machine. Only the
	// commands load and join have them.
	Places []region.Addr `json:"places,omitempty"`
	Run    *runOrder     `json:"run,omitempty"`
	Start  time.Time     `json:"start,omitzero"`
	// Uncertain is peers.uncertain. Only the command check has it.
	Uncertain int64 `json:"uncertain,omitempty"`
}

// Commands.
const (
	doLoad  = "load"
	doJoin  = "join"  // find the data that the others have loaded
	doRun   = "run"   // open the clients of a run
	doStart = "start" // run the clients
	doCheck = "check"
	doStop  = "stop"  // end the run, which makes the machines answer doStart; not answered itself
	doPass  = "pass"  // all machines are at the barrier; not answered
	doClose = "close" // close the machine; its answer is the end of the process
)

// A runOrder describes a run; its threads are numbered from First, over all runs.
type runOrder struct {
	Options
	First int
	// IsProfiled is set if the machines shall take profiles, each to its own Options.Profile.
	IsProfiled bool
}

// A report is a message from a machine's process. One of the fields is set; Space may be set
// in addition.
type report struct {
	// Barrier and Progress are sent during a command; the others answer one.
	Barrier  bool          `json:"barrier,omitempty"`
	Progress *stageReport  `json:"progress,omitempty"`
	Opened   *opened       `json:"opened,omitempty"`
	Part     *part         `json:"part,omitempty"`
	Done     bool          `json:"done,omitempty"`
	Space    *Space        `json:"space,omitempty"` // set beside Done, in the answer to a check
	Failed   *failedReport `json:"failed,omitempty"`
}

type stageReport struct {
	What        string `json:"what"`
	Done, Total int
	IsOver      bool
}

// opened is sent by a machine that has joined the cluster.
type opened struct {
	Place region.Addr `json:"place"`
	Name  string      `json:"name"`
	Scale Scale       `json:"scale"`
	Kinds []string    `json:"kinds"`
}

// A failedReport is an error from another process.
type failedReport struct {
	Text           string
	IsInconsistent bool // the error is an ErrInconsistent
	IsRefused      bool // the error is an ErrTarget
}

func failed(err error) report {
	return report{Failed: &failedReport{err.Error(), errors.Is(err, ErrInconsistent), errors.Is(err, ErrTarget)}}
}

// Error implements error.
func (f *failedReport) Error() string { return f.Text }

// Is lets errors.Is match errors of other processes.
func (f *failedReport) Is(target error) bool {
	return (f.IsInconsistent && target == ErrInconsistent) || (f.IsRefused && target == ErrTarget)
}

// A speaker writes JSON, one object at a time.
type speaker struct {
	mu sync.Mutex
	e  *json.Encoder
}

func newSpeaker(w io.Writer) *speaker { return &speaker{e: json.NewEncoder(w)} }

func (s *speaker) say(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.e.Encode(v)
}
