package main

import (
	"fmt"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type restoreCommand struct {
	offlineFlags
	From         string `required:"" placeholder:"FOLDER" help:"What farmsql save has made."`
	Overwrite    bool   `help:"Replace memory that is there, and go back even if the database has been at work since the save: WHAT WAS COMMITTED SINCE IS LOST."`
	SharedFolder string `placeholder:"FOLDER" help:"With --cluster: see farmsql serve."`
}

// Help is shown by restore --help.
func (restoreCommand) Help() string {
	return durability + `

Brings a database or a cluster back from what farmsql save has made: the folders of all its
machines, in one data folder or in one for each (in the order of their numbers), and its
configuration. Then start it as usual. The folders and the place of the configuration may be others
than before.

The whole save is read and compared with its checksums before anything is replaced. A data folder
that holds memory is not touched without --overwrite, and one of another cluster never is.`
}

// Run restores the instance.
func (c *restoreCommand) Run(std cli.Streams) error {
	if running := runningIn(c.Data); len(running) > 0 {
		return fmt.Errorf("%s is in use by process %d: stop all machines first", running[0].folder, running[0].Process)
	}
	o := c.offline()
	o.SharedFolder = c.SharedFolder
	p := newProgress(std.Err, "restoring")
	o.Progress = p.report
	report, err := farmsql.Restore(o, c.From, c.Overwrite)
	p.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "restored %s from %s: %s\n", reportText(report), c.From, report.Bytes)
	return nil
}
