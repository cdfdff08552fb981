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
	_ "embed"
	"os"
	"strings"
	_ "time/tzdata" // machines without zone files

	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/session"
)

func main() { os.Exit(program()) }

// program is the program on what the process was given.
func program() int { return cli.OfProcess().Run(context.Background(), commands(), os.Args[1:]) }

//go:embed commands.txt
var commandsText string

// commands is the table of what the program can do.
func commands() cli.Table {
	return cli.Table{Program: "tidemark", Text: commandsText,
		Args:  map[string]func(*cli.Main) error{"KEY": oneKey, "REF": oneRef, "BRANCH": oneRef},
		Words: strings.NewReplacer("{slash}", session.Help(), "{phone}", phoneHelp).Replace,
		Runs: map[string]cli.Run{
			"chat": cli.Does(chat), "import": cli.Does(importLog), "reset": cli.Does(resetSession), "abort": cli.Plain(abort),
			"compact":     cli.Plain(compact).Checked(func(m *cli.Main) error { return someKey(m, m.Args[:min(len(m.Args), 1)]) }),
			"sessions ls": served(sessionsLs), "sessions show": servedPlain(sessionsShow), "sessions set": cli.Does(sessionsSet), "sessions search": cli.Does(sessionsSearch),
			"agents": servedPlain(agents), "view": served(view), "log": served(logCommand), "export": cli.Does(export), "anatomy": cli.Does(anatomyOf), "episodes": served(episodesShow),
			"recall": cli.Does(recallCommand).Checked(recallAsked), "task": cli.Does(showTask),
			"memory ls": cli.Does(memoryLs), "memory cat": served(memoryCat), "memory search": cli.Does(memorySearch), "memory edit": served(memoryEdit), "memory undo": cli.Does(memoryUndo),
			"memory ledger": cli.Does(memoryLedger), "memory ledger undo": cli.Does(memoryLedgerUndo), "memory digest": cli.Does(memoryDigest),
			"skill ls": cli.Does(skillLs), "skill show": cli.Does(skillShow), "skill add": cli.Does(skillAdd), "skill rm": cli.Does(skillRm), "skill new": cli.Plain(skillNew),
			"archive ls": served(archiveLs), "archive cat": served(archiveCat), "archive search": cli.Does(archiveSearch), "archive verify": served(archiveVerify), "archive restore": cli.Does(archiveRestore),
			"snapshot": cli.Does(snapshotTake).Checked(snapshotName), "snapshot ls": cli.Does(snapshotLs), "snapshot show": cli.Does(snapshotShow), "snapshot export": cli.Does(snapshotExport),
			"snapshot import": cli.Does(snapshotImport), "snapshot check": cli.Plain(snapshotCheck), "snapshot rm": cli.Does(snapshotRm),
			"branch": cli.Does(branch), "tree": cli.Does(tree), "compare": served(compare), "merge": served(merge),
			"trim": cli.Does(trimCommand).Checked(atMostOne), "untrim": cli.Does(untrim).Checked(atMostOne),
			"hook install": cli.Does(hookInstall), "hook uninstall": cli.Does(hookUninstall), "hook status": cli.Plain(hookStatus), "hook run": cli.Plain(hookRun).Raw(),
			"serve": cli.Does(serve), "proxy": cli.Does(runProxy).Checked(cli.AnyArgs), "demo": cli.Plain(demoRun), "bench": elsewhere(""), "replay": elsewhere("replay"), "probe": elsewhere("probe"),
			"cost": cli.Does(costCommand), "doctor": cli.Plain(doctorRun),
			"config show": cli.Plain(configShow), "config check": cli.Plain(configCheck), "config schema": cli.Plain(configSchema),
			"approvals ls": servedPlain(approvalsLs), "approvals allow": servedPlain(decideCall(true)), "approvals deny": servedPlain(decideCall(false)),
			"pairing ls": served(pairingLs), "pairing approve": decideDesk("pairing", "approve"), "pairing deny": decideDesk("pairing", "deny"),
			"pairing block": decideDesk("pairing", "block"), "pairing forget": decideDesk("pairing", "forget"),
			"owner ls": served(ownerLs), "owner link": decideDesk("owner", "link"), "owner unlink": decideDesk("owner", "unlink"),
			"telegram connect": cli.Does(telegramConnect), "telegram status": cli.Plain(telegramStatus), "telegram disconnect": cli.Plain(telegramDisconnect),
			"whatsapp simulate": cli.Does(whatsappSimulate), "mcp": cli.Plain(mcp),
			"schedule add": cli.Does(scheduleAdd), "schedule ls": cli.Does(scheduleLs), "schedule show": cli.Does(scheduleShow), "schedule run": served(scheduleRun), "schedule runs": cli.Does(scheduleRuns),
			"schedule pause": cli.Does(scheduleSet(agent.SchedulePaused)), "schedule resume": cli.Does(scheduleSet(agent.ScheduleOn)), "schedule rm": cli.Does(scheduleRm),
			"tool add": cli.Does(toolAdd), "tool ls": cli.Does(toolLs), "tool test": cli.Plain(toolTest), "tool rm": cli.Plain(toolRm), "version": cli.Plain(printVersion),
		}}
}

// elsewhere says of a command that another program has it, and how it is called there.
func elsewhere(name string) cli.Run {
	return cli.Plain(func(_ context.Context, m *cli.Main) error {
		m.Err.Printf("%s: that is in a program of its own, tidemark-bench: %s\n", m.Path(), strings.Join(append(strings.Fields("go run ./cmd/bench "+name), m.Args...), " "))
		return cli.ErrTold
	}).Raw()
}

// ownWindow reports whether --window was given. 0 would mean the configured one, silently.
func ownWindow(m *cli.Main, window int64) (bool, error) {
	given := m.Changed("window")
	if given && window <= 0 {
		return false, cli.Usagef("--window %d: want the size of a context window in tokens, such as 32000", window)
	}
	return given, nil
}

// oneKey takes the one session that a command is about. There is no default: a mistake here would
// archive or stop a conversation that nobody meant.
func oneKey(m *cli.Main) error {
	if len(m.Args) > 1 {
		return cli.Usagef("%s: want KEY, got %s", m.Path(), strings.Join(m.Args, " "))
	}
	return someKey(m, m.Args)
}

func someKey(m *cli.Main, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("%s: which session? `tidemark sessions ls` lists them; the one of a plain `tidemark chat` is main", m.Path())
	}
	if strings.TrimSpace(args[0]) == "" {
		return cli.Usagef("%s: the key is empty: want the key of a session, such as main; `tidemark sessions ls` lists them", m.Path())
	}
	return nil
}

// atMostOne takes one log, or none where a flag names it.
func atMostOne(m *cli.Main) error {
	if len(m.Args) > 1 {
		return cli.Usagef("%s: want one log, got %s", m.Path(), strings.Join(m.Args, " "))
	}
	return nil
}
