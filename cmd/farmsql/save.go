package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// offlineFlags name the files of an instance that has no running process.
type offlineFlags struct {
	Data    []string `default:"./farmsql-data" sep:"none" placeholder:"FOLDER" help:"Data folder (${default}). Of a cluster whose machines have several, once for each."`
	Cluster string   `placeholder:"URL" help:"Of a cluster, whose machines are processes of their own: where the configuration is kept, as for farmsql serve."`
}

// offline converts the flags to the library's type.
func (f offlineFlags) offline() farmsql.Offline {
	return farmsql.Offline{Data: f.Data, Cluster: f.Cluster}
}

type saveCommand struct {
	offlineFlags
	To       string        `required:"" placeholder:"FOLDER" help:"Where the save is to be: a folder that does not exist yet."`
	Stop     bool          `help:"Stop what runs first, all machines at once, and in good order."`
	Patience time.Duration `default:"1m" placeholder:"DURATION" help:"With --stop: how long that may take (${default})."`
	Trust    bool          `help:"See farmsql serve."`
}

// Help is shown by save --help.
func (saveCommand) Help() string {
	return durability + `

Writes the memory of all machines of a database, or of a cluster, into one folder, with checksums,
for farmsql restore. No machine may run meanwhile, so that the save has the memory of all machines at
one moment. Machines that were killed may be saved as they are; the next start recovers them. The
folder gets its name when the save is complete; an incomplete save is called FOLDER.unfinished and
is worth nothing.`
}

// Run saves the instance.
func (c *saveCommand) Run(std cli.Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if c.Stop {
		if err := stopAll(ctx, c.Data, c.Patience, std); err != nil {
			return err
		}
	} else if running := runningIn(c.Data); len(running) > 0 {
		return fmt.Errorf("%s runs (process %d): stop all machines first, or give --stop", filepath.Base(running[0].folder), running[0].Process)
	}
	o := c.offline()
	o.Trust = c.Trust
	p := newProgress(std.Err, "saving")
	o.Progress = p.report
	report, err := farmsql.Save(o, c.To)
	p.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "saved %s in %s: %s\n", reportText(report), c.To, report.Bytes)
	return nil
}

// reportText describes what was saved or restored.
func reportText(r farmsql.SaveReport) string {
	machines := "1 machine"
	if r.Machines != 1 {
		machines = fmt.Sprintf("%d machines", r.Machines)
	}
	return fmt.Sprintf("%s of cluster %s, as of configuration %d", machines, r.Cluster, r.Configuration)
}

// runningIn returns the answers of the processes that are using data folders.
func runningIn(data []string) (running []statusAnswer) {
	for _, d := range data {
		command := statusCommand{Data: d}
		for _, a := range command.ask() {
			if a.err == nil {
				running = append(running, a)
			}
		}
	}
	return running
}

// stopPoll is how often stopAll checks whether a process has ended.
const stopPoll = 20 * time.Millisecond

// stopAll asks all processes that use data folders to stop, and waits until they have ended. It
// asks all at once, so that none of them suspects another.
func stopAll(ctx context.Context, data []string, patience time.Duration, std cli.Streams) error {
	running := runningIn(data)
	for _, a := range running {
		if err := syscall.Kill(a.Process, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s (process %d): %w", filepath.Base(a.folder), a.Process, err)
		}
	}
	if len(running) > 0 {
		fmt.Fprintf(std.Err, "stopping %s\n", plural(len(running), "process", "processes"))
	}
	deadline := time.Now().Add(patience)
	for _, a := range running {
		for isProcess(a.Process) {
			if ctx.Err() != nil {
				return errors.New("interrupted: the processes that were asked to stop still run, and will stop")
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s (process %d) has not stopped within %v", filepath.Base(a.folder), a.Process, patience)
			}
			time.Sleep(stopPoll)
		}
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// isProcess reports whether a process is still running. A zombie, whose parent has not collected
// its status, counts as ended.
func isProcess(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return !errors.Is(err, fs.ErrNotExist)
}
