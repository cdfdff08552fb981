// Command tidemark-bench plays the benchmarks of the papers on the parts of Tidemark, and makes their tables.
package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

func main() { os.Exit(program()) }

// program is the program on what the process was given.
func program() int { return cli.OfProcess().Run(context.Background(), benchCommands(), os.Args[1:]) }

//go:embed commands.txt
var benchText string

// benchCommands is the table of the benchmarks.
func benchCommands() cli.Table {
	return cli.Table{Program: "tidemark-bench", Text: benchText, Runs: map[string]cli.Run{
		"needles": cli.Does(benchNeedles), "locomo": cli.Does(benchLocomo), "quality": cli.Does(benchQuality).Checked(cli.AnyArgs),
		"treatments": cli.Does(benchTreatments), "episodes": cli.Does(benchEpisodes), "cost": cli.Does(costStudy),
		"replay": cli.Does(replayCommand).Checked(cli.AnyArgs), "probe": cli.Does(probeLogs),
	}}
}
