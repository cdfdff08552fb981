// Command tidemark is the native binary: the server and the command line. It decides nothing: parts
// meet here and nowhere else. Begin with Main.Run here, then serve.go for the server and client.go for
// the commands.
//
// Every command but serve and doctor speaks HTTP to the same handler: over the network when a server
// holds the store or --server names one, else in this process, on the local store. So each command has
// one code path.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // machines without zone files

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run())
}

// run is the program on what the process was given.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	m := &Main{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Terminal: isatty.IsTerminal(os.Stdout.Fd()) && isatty.IsTerminal(os.Stdin.Fd()),
		Progress: isatty.IsTerminal(os.Stderr.Fd()),
	}
	return m.Run(ctx, os.Args[1:])
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main is the program with what it was given. Tests run it in their own process.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Terminal       bool // a person types and reads
	Progress       bool // a person sees Stderr

	// What the flags of every command say.
	home, config, server string
	json                 bool

	out, err *output // Stdout and Stderr
	entered  bool    // the flags were right, and the command has begun
}

// Run parses the arguments, carries out the command and returns the exit code.
func (m *Main) Run(ctx context.Context, args []string) int {
	m.out, m.err = &output{w: m.Stdout}, &output{w: m.Stderr}
	root := m.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = m.out.failure()
	}
	return m.report(cmd, err)
}

// root returns the tree of commands.
func (m *Main) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tidemark",
		Short: "Conversations that never end and never forget",
		Long: `Tidemark is a chat backend whose conversations never end and never forget.
When the model's window fills, it makes the context smaller without losing
anything: every original stays readable, searchable and recallable.`,
		Example: `  tidemark demo                     see it work, offline, in a few seconds
  tidemark serve                    serve the API at 127.0.0.1:8787
  tidemark chat                     talk in the main session
  tidemark chat garden --window 8000
  tidemark import log.jsonl --session work --window 32000`,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		PersistentPreRun:  func(*cobra.Command, []string) { m.entered = true },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(m.Stdin)
	root.SetOut(m.out)
	root.SetErr(m.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	flags := root.PersistentFlags()
	flags.StringVar(&m.home, "home", "", "folder of the store (TIDEMARK_HOME, default ~/.tidemark)")
	flags.StringVar(&m.config, "config", "", "configuration document (TIDEMARK_CONFIG, default tidemark.jsonc in the home folder)")
	flags.StringVar(&m.server, "server", "", "URL of a server to use instead of the local store (TIDEMARK_SERVER)")
	root.AddGroup(&cobra.Group{ID: "talk", Title: "Talk:"}, &cobra.Group{ID: "look", Title: "Look:"}, &cobra.Group{ID: "branch", Title: "Keep and branch:"}, &cobra.Group{ID: "run", Title: "Run:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("talk", m.chatCommand(), m.importCommand(), m.resetCommand(), m.compactCommand(), m.abortCommand())
	add("look", m.sessionsCommand(), m.agentsCommand(), m.viewCommand(), m.logCommand(), m.exportCommand(), m.anatomyCommand(), m.episodesCommand(), m.recallCommand(), m.taskCommand(), m.memoryCommand(), m.skillCommand(), m.archiveCommand())
	add("branch", m.snapshotCommand(), m.branchCommand(), m.treeCommand(), m.compareCommand(), m.mergeCommand(), m.trimCommand(), m.untrimCommand(), m.hookCommand())
	add("run", m.serveCommand(), m.proxyCommand(), m.demoCommand(), m.benchCommand(), m.replayCommand(), m.probeCommand(), m.costCommand(), m.doctorCommand(), m.configCommand(), m.approvalsCommand(), m.pairingCommand(), m.ownerCommand(), m.telegramCommand(), m.whatsappCommand(), m.mcpCommand(), m.scheduleCommand(), m.toolCommand(), m.versionCommand())
	wantArgs(root)
	return root
}

// env returns an environment variable.
func (m *Main) env(name string) string {
	for i := len(m.Environ) - 1; i >= 0; i-- {
		if n, v, ok := strings.Cut(m.Environ[i], "="); ok && n == name {
			return v
		}
	}
	return ""
}

// jsonFlag gives a listing its --json.
func (m *Main) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&m.json, "json", false, "print JSON")
	return cmd
}

// group makes a command that only holds others.
func group(use, short, example string, cmds ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s: which one? it has %s", cmd.CommandPath(), names(cmd))
			}
			cmd.SuggestionsMinimumDistance = 2 // cobra's own for the root; it has none for groups
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return usagef("%s: unknown command %q; did you mean %s?", cmd.CommandPath(), args[0], strings.Join(near, " or "))
			}
			return usagef("%s: unknown command %q; it has %s", cmd.CommandPath(), args[0], names(cmd))
		}}
	c.AddCommand(cmds...)
	return c
}

// ownWindow reports whether --window was given. 0 would mean the configured one, silently.
func ownWindow(cmd *cobra.Command, window int64) (bool, error) {
	given := cmd.Flags().Changed("window")
	if given && window <= 0 {
		return false, usagef("--window %d: want the size of a context window in tokens, such as 32000", window)
	}
	return given, nil
}

// oneKey takes the one session that a command is about. There is no default: a mistake here would
// archive or stop a conversation that nobody meant.
func oneKey(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s: which session? `tidemark sessions ls` lists them; the one of a plain `tidemark chat` is main", cmd.CommandPath())
	}
	if strings.TrimSpace(args[0]) == "" {
		return usagef("%s: the key is empty: want the key of a session, such as main; `tidemark sessions ls` lists them", cmd.CommandPath())
	}
	return cobra.ExactArgs(1)(cmd, args)
}

func names(cmd *cobra.Command) string {
	var out []string
	for _, c := range cmd.Commands() {
		out = append(out, c.Name())
	}
	return strings.Join(out, ", ")
}
