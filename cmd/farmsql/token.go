package main

import (
	"fmt"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type tokenCommand struct {
	Data string        `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder of the cluster's first machine, or its --saves, whichever has the folder peer (${default})."`
	Uses int           `default:"1" placeholder:"N" help:"How many machines can join with the token (${default})."`
	For  time.Duration `default:"1h" placeholder:"DURATION" help:"How long it can be used (${default})."`
}

// Help is shown by token --help.
func (tokenCommand) Help() string {
	return `
Run it at the first machine of a cluster that was made with serve --cluster raft:, as the same user;
the machine may be running. Machines can join only while it runs. The token is secret: whoever has
it, and reaches the machine, can join, and then read and change all data.`
}

// Run makes a token and prints it.
func (c *tokenCommand) Run(std cli.Streams) error {
	switch {
	case c.Uses < 1:
		return cli.UsageError("--uses is less than 1")
	case c.For <= 0:
		return cli.UsageError("--for is not a time")
	}
	token, err := farmsql.NewToken(c.Data, c.Uses, c.For)
	if err != nil {
		return err
	}
	fmt.Fprint(std.Out, joinCommand(token))
	return nil
}

// invitation says how the machines that are missing join a new cluster.
func invitation(token string, machines int, life time.Duration) string {
	who := fmt.Sprintf("%d other machines have", machines)
	if machines == 1 {
		who = "another machine has"
	}
	return fmt.Sprintf("the cluster begins when %s joined; on each host, within %s:\n%s", who, life, joinCommand(token))
}

// joinCommand returns the line with which a machine joins.
func joinCommand(token string) string {
	return fmt.Sprintf("    farmsql serve --data FOLDER --listen 0.0.0.0:3306 --join %s\n", token)
}
