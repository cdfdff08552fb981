package lint

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Bounds of the package tree.
const (
	MaxChain = 7 // edges on the longest chain of imports among our packages; those within cmd are one program
	MaxDepth = 2 // folders below the root
)

// row says what of ours a package may import besides tidemark and internal/json.
type row struct {
	pkg  string
	may  string // names in the table, all of them above this row; "*" is every row above that is no test package
	not  string // taken out of "*"
	test bool   // only tests and other test packages may import it
	why  string // why it may not import the rest
}

// table is the import table: imports point up in this list, that is down in the code. A new package
// is a new row; one more import is one more word.
var table = []row{
	{pkg: "internal/json", why: "it is below everything"},
	{pkg: "internal/lexicon", why: "it is below everything: words and sentences, of which several tell the same"},
	{pkg: "internal/clip", why: "it is below everything: one rule of how a text that people see is cut"},
	{pkg: "internal/near", why: "it is below everything: one rule of what a mistyped name meant"},
	{pkg: "internal/calls", why: "it is below everything: names of fields, which both trims know"},
	{pkg: "internal/picture", why: "it is below everything: bytes in, width and height out"},
	{pkg: "tidemark", why: "the root holds nouns and contracts, so that everything may import it"},

	{pkg: "internal/sse", why: "events in, events out"},
	{pkg: "internal/jsonscan", why: "bytes in, places and bytes out"},
	{pkg: "internal/gz", why: "bytes in, bytes out"},
	{pkg: "internal/place", why: "bytes in, a file out: what is in it is for others to say"},

	{pkg: "cleanup", why: "text in, text and operations out: what they do is for others to say"},
	{pkg: "paging", may: "internal/near internal/jsonscan", why: "it decides and never acts: a history goes in, decisions come out"},
	{pkg: "episodes", may: "internal/near", why: "it decides and never acts; which files a tool names is told by a port"},
	{pkg: "compaction", may: "internal/clip internal/calls internal/lexicon internal/near internal/picture internal/jsonscan cleanup paging episodes", why: "plans are pure: what it needs is in the View"},
	{pkg: "mend", may: "compaction", why: "it decides and never acts: a view goes in, and the requests of a search are the caller's"},
	{pkg: "memory", may: "internal/lexicon", why: "files, facts and ranking; who remembers what is for session and agent to say"},
	{pkg: "skill", why: "a file format and its list in a prompt; where they lie, and who may read them, is for agent to say"},
	{pkg: "archive", may: "internal/gz memory", why: "a file format over Blobs, searched by the one tokenizer; who archives what is for the session to say"},
	{pkg: "provider", may: "internal/sse internal/clip internal/picture internal/jsonscan", why: "a wire format; it knows one request, no session"},
	{pkg: "provider/offline", may: "internal/clip internal/lexicon internal/jsonscan provider", why: "a request in, a reply out: it is a provider like the others, and makes a request valid by the same rules"},
	{pkg: "approval", why: "rules and a call in, a decision out: who is asked is for the session to say"},
	{pkg: "reset", why: "policy is a pure function of time and configuration"},
	{pkg: "schedule", why: "when something is due: a specification and a time in, a time out"},
	{pkg: "transcript", may: "internal/jsonscan", why: "logs of other tools must be readable without a session or a host"},
	{pkg: "trim", may: "internal/calls internal/jsonscan internal/place transcript", why: "a log in, a log and cuts out: which file that is, and what it is worth, is for others to say"},
	{pkg: "snapshot", why: "nodes, their tree and a file format; it knows no session and no log"},
	{pkg: "metric", why: "figures in, a text out: what is counted is for others to say"},
	{pkg: "cost", why: "prices and formulas over figures; it reads nothing"},
	{pkg: "cost/logs", may: "internal/picture internal/jsonscan transcript trim cost", why: "it measures logs and folders of them; where they lie is told"},
	{pkg: "claude", may: "internal/near internal/jsonscan internal/place transcript trim snapshot", why: "it keeps the files of another tool; no session of ours, no prices"},
	{pkg: "probe", may: "paging transcript", why: "it measures logs: items go in, figures come out"},
	{pkg: "config", may: "internal/clip internal/near approval paging episodes", why: "values only; each package declares its own options, and paging reads its table of tools"},

	{pkg: "host", why: "it is what a platform gives, the SQL log over tidemark.DB; it knows no actor"},
	{pkg: "proxy/body", may: "internal/jsonscan", why: "bytes in, bytes out: which edits apply is for the proxy to say"},
	{pkg: "toolbox", may: "approval proxy/body", why: "it joins sources behind a port of its own; how one is reached, and whether the owner agrees, is for others to say"},
	{pkg: "mcp", may: "internal/sse", why: "a protocol over the host's transport; who may call what is for the toolbox to say"},
	{pkg: "proxy/stream", may: "internal/sse internal/jsonscan cleanup provider", why: "an answer in, an answer out; it knows no conversation"},
	{pkg: "proxy", may: "internal/clip cleanup paging episodes host proxy/body proxy/stream", why: "it owns the conversations of clients that keep their history; requests and answers are carried by a door"},
	{pkg: "host/native", may: "host", why: "a host serves the ports of the root and knows no actor"},
	{pkg: "host/cloudflare", may: "host", why: "a host serves the ports of the root and knows no actor"},

	{pkg: "mcp/stdio", may: "internal/jsonscan mcp host/native", why: "a transport of the client over processes, so it is native only"},

	{pkg: "channel/markup", why: "text in, text out"},
	{pkg: "channel/wire", why: "a request and a file over the host's transport; it knows no platform"},
	{pkg: "channel", may: "internal/clip host", why: "it converts to root types and hands on; sessions and agents are reached by ports"},
	{pkg: "channel/whatsapp", may: "internal/clip channel channel/markup channel/wire", why: "a protocol over the host's transport; who may talk, and when it is sent, is for others to say"},
	{pkg: "channel/telegram", may: "internal/clip channel channel/markup channel/wire", why: "a protocol over the host's transport; who may talk, and when it is sent, is for others to say"},

	{pkg: "recall", may: "internal/lexicon memory", why: "it ranks what it is given, by the one tokenizer; who looks where is for session and agent to say"},
	{pkg: "blocks", may: "internal/gz internal/jsonscan", why: "blocks in, references out: which messages, and when, is for the session to say"},
	{pkg: "room", may: "internal/clip blocks cleanup compaction paging memory skill host recall snapshot", why: "what a session and its rooms know of each other: ports and small interfaces, no room and no session"},
	{pkg: "lineage", may: "host", why: "what continues what, read from the log and heads: who shows or compacts it is for the session"},
	{pkg: "history", may: "compaction blocks lineage host", why: "it reads a log and what is visible of it: what is written, and what a model is sent, is for the session"},
	{pkg: "window", why: "it keeps figures and asks for them by ports; what is made to fit them is for the session"},
	{pkg: "refusal", why: "it reads what a provider made of an answer: what is done about it is for others"},
	{pkg: "summary", may: "compaction memory refusal", why: "it asks a model and keeps a draft: what leaves, and what stands in for a summary, is for the session to say"},
	{pkg: "parts", may: "archive host lineage", why: "it stores what it is told to, up to a position: what leaves the view is for the session to say"},
	{pkg: "room/task", may: "internal/clip internal/lexicon compaction memory host recall room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/anatomy", may: "internal/clip compaction episodes paging host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/outbound", may: "internal/clip room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/occasion", may: "room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/approvals", may: "internal/clip approval room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/episodes", may: "internal/clip compaction episodes host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/pack", may: "compaction memory recall room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/pager", may: "internal/clip cleanup compaction paging host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/delegation", may: "internal/clip approval room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/errand", may: "room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/selfcheck", may: "internal/clip blocks compaction host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/sittings", may: "internal/clip memory host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/reflection", may: "compaction host recall room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/snapshots", may: "internal/clip compaction host room snapshot", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/search", may: "internal/clip internal/gz compaction memory host recall room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/replay", may: "blocks host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/spool", may: "host room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/toolset", may: "room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "room/vectors", may: "internal/clip host recall room", why: "a room holds ports and its own tables: no other room, no session"},
	{pkg: "session", may: "internal/clip blocks lineage history parts refusal summary window room approval cleanup compaction mend paging episodes archive memory recall reset host skill", why: "it calls its agent, its provider and its doors through ports of the root"},
	{pkg: "agent", may: "internal/clip schedule internal/near memory archive recall reset host skill snapshot", why: "it calls its sessions through ports of the root and of recall, never session itself"},
	{pkg: "worker", may: "lineage internal/sse internal/clip internal/near internal/jsonscan room/anatomy room/task room/approvals room/episodes room/outbound room/search room/replay room/snapshots room/spool room/reflection schedule channel session agent config archive memory recall transcript compaction episodes proxy proxy/body skill snapshot cost toolbox metric", why: "routes and doors; the host and the provider are given to it in cmd/"},

	{pkg: "setup", may: "window room room/anatomy room/selfcheck room/task room/approvals room/delegation room/errand room/episodes room/pager room/pack room/toolset room/outbound room/occasion room/replay room/search room/vectors room/snapshots room/spool room/sittings room/reflection approval paging episodes proxy toolbox mcp channel channel/whatsapp channel/telegram session agent compaction config memory provider provider/offline recall reset", why: "values in, values out: the host brings the ports"},

	{pkg: "bench", may: "internal/sse room room/replay room/search room/task room/pack room/vectors compaction archive paging episodes proxy recall session provider/offline transcript worker host/native", why: "it plays a paper's benchmark on the parts themselves; commands run it, nothing else needs it"},

	{pkg: "internal/graph", why: "it stands in for Meta's servers, independent of our client; tidemark whatsapp simulate runs it"},
	{pkg: "tidemarktest", may: "internal/picture", test: true, why: "fakes obey the contracts of the root and nothing else"},
	{pkg: "trim/logtest", test: true, why: "it writes logs from a seed and knows nobody who reads them"},
	{pkg: "host/hosttest", may: "host host/native host/cloudflare", test: true, why: "one contract test for all hosts"},
	{pkg: "agent/agenttest", may: "agent host/hosttest tidemarktest schedule memory archive recall skill snapshot", test: true, why: "an agent that others are beside in one database"},
	{pkg: "internal/lint", test: true, why: "it reads the others, it does not link them"},

	{pkg: "host/probe", may: "host host/cloudflare provider", test: true, why: "it proves the bridge in workerd, and a provider on it, without any business"},

	{pkg: "wasi", may: "internal/near internal/place", why: "modules in, results out, natively only; who may call them is for others to say"},
	{pkg: "examples/datecalc", why: "it is a tool, built for wasip1 and for nothing of ours; it imports what anybody has"},

	{pkg: "web", why: "files of the page and how they are served; what it shows comes through the doors"},

	{pkg: "cmd/cli", may: "internal/sse internal/place compaction config setup provider paging transcript cost cost/logs trim host/native", why: "what commands share: a table of them, output, settings, a client of the API and readers of logs; no command"},
	{pkg: "cmd/node", may: "*", not: "host/cloudflare", why: "parts meet here: the native host of agents and sessions"},
	{pkg: "cmd/tidemark", may: "*", not: "host/cloudflare bench", why: "parts meet here"},
	{pkg: "cmd/bench", may: "*", not: "host/cloudflare", why: "parts meet here, to be measured"},
	{pkg: "cmd/worker", may: "*", not: "host/native mcp/stdio web bench cmd/cli cmd/node", why: "parts meet here, without what is native only"},
	{pkg: "build", test: true, why: "it compiles the programs, it does not link them"},
	{pkg: "test", may: "*", test: true, why: "end-to-end tests drive the programs"},
	{pkg: "test/fault", may: "*", test: true, why: "it kills the programs"},
	{pkg: "test/e2e", may: "*", test: true, why: "it talks to the programs, and to the handler itself"},
	{pkg: "test/channels", may: "*", test: true, why: "it drives the programs, with a platform's fake behind them"},
	{pkg: "test/whatsapp", may: "internal/graph", test: true, why: "it is the fake as a program, for tests in JavaScript"},
	{pkg: "test/crash", test: true, why: "it kills the process that it is built into; only a build with the tag fault has it"},
	{pkg: "test/paging", may: "internal/json paging", test: true, why: "it runs another program beside ours, over sessions that paging makes"},
	{pkg: "test/trim", may: "trim/logtest", test: true, why: "it runs another program beside ours, over logs that trim/logtest makes"},
	{pkg: "test/mutate", may: "internal/json", test: true, why: "it reads the others and runs their tests, it does not link them"},
	{pkg: "test/odd", may: "*", test: true, why: "it plays model APIs before sessions as they are put together"},
	{pkg: "test/tools", may: "*", test: true, why: "it runs servers of others beside our clients"},
	{pkg: "test/ai", may: "*", test: true, why: "it proves a provider in workerd"},
	{pkg: "test/mcp", may: "", test: true, why: "it is a client of others before our server"},
}

// parted names pairs that must never import each other, whatever the rows say.
var parted = []struct{ a, b, why string }{
	{"session", "agent", "on Workers they are two Durable Objects; a direct call works natively only"},
	{"host/native", "host/cloudflare", "two platforms; what they share belongs in host"},
}

// rooms begins the names of packages that are rooms of a session.
const rooms = "room/"

// homes are packages of others that have one place of ours (tests apart).
var homes = []struct{ path, at, why string }{
	{"encoding/json", "internal/json internal/lint examples/datecalc", "JSON has one import, so that both hosts encode alike"},
	{"github.com/goccy/go-json", "internal/json", "JSON has one import, so that both hosts encode alike"},
	{"database/sql", "host/native", "everything else speaks tidemark.DB"},
	{"modernc.org/sqlite", "host/native", "everything else speaks tidemark.DB"},
	{"github.com/aws/", "host/native", "everything else speaks tidemark.Blobs"},
	{"github.com/syumai/workers", "host/cloudflare host/probe", "everything else speaks the ports of the root; the probe measures it beside ours"},
	{"github.com/modelcontextprotocol/go-sdk", "", "tests only: it is the other side of our client and of our server"},
	{"syscall/js", "host/cloudflare cmd/worker host/probe", "everything else speaks the ports of the root"},
	{"github.com/tetratelabs/wazero", "wasi", "modules run in one place, and never inside the Worker's own"},
	{"github.com/spf13/cobra", "cmd/cli", "the command line has one place"},
	{"testing", "tidemarktest host/hosttest agent/agenttest internal/lint test", "it registers flags in the program"},
	{"github.com/evanw/esbuild", "build", "it bundles the page when that is built, nothing needs it later"},
	{"github.com/anthropics/anthropic-sdk-go", "", "tests only: it brings http.Client and 50 s of build"},
	{"github.com/openai/openai-go", "", "tests only: it brings http.Client and 50 s of build"},
	{"github.com/johannesboyne/gofakes3", "", "tests only: a fake S3"},
}

// Graph maps a package of ours to what it imports, tests apart.
type Graph map[string][]string

// ReadGraph lists the imports of all packages on all targets.
func ReadGraph(root string) (Graph, error) {
	g := Graph{}
	for _, t := range []Target{Native, Worker} {
		listed, err := List(root, t, false, "./...")
		if err != nil {
			return nil, err
		}
		for _, l := range listed {
			name := Short(l.ImportPath)
			if name == "" {
				continue
			}
			if g[name] == nil {
				g[name] = []string{}
			}
			for _, i := range l.Imports {
				if !slices.Contains(g[name], i) {
					g[name] = append(g[name], i)
				}
			}
		}
	}
	return g, nil
}

// Imports holds a graph against the tables.
func Imports(g Graph) []Finding {
	var fs []Finding
	add := func(pkg, name, format string, args ...any) {
		fs = append(fs, Finding{File: pkg, Rule: ruleImport, Name: name, Text: fmt.Sprintf(format, args...)})
	}
	for pkg, paths := range g {
		r, ok := rowOf(pkg)
		if !ok {
			add(pkg, pkg, "has no row in the import table; add one to internal/lint/imports.go with what it may import and why no more")
			continue
		}
		if pkg != "tidemark" && strings.Count(pkg, "/") >= MaxDepth {
			add(pkg, pkg, "lies more than %d folders deep; name it for what it holds and move it up", MaxDepth)
		}
		for _, path := range paths {
			if ours := Short(path); ours != "" {
				if why := refused(r, ours); why != "" {
					add(pkg, ours, "imports %s: %s; instead: a contract in the root, or a word in the table of internal/lint/imports.go", ours, why)
				}
				continue
			}
			for _, h := range homes {
				if (path == h.path || strings.HasPrefix(path, strings.TrimSuffix(h.path, "/")+"/")) && !slices.Contains(strings.Fields(h.at), pkg) {
					add(pkg, path, "imports %s, whose place is %q: %s", path, h.at, h.why)
				}
			}
		}
	}
	if chain := longest(g); edges(chain) > MaxChain {
		add(chain[0], "chain", "starts a chain of %d imports, at most %d: %s", edges(chain), MaxChain, strings.Join(chain, " > "))
	}
	return fs
}

func rowOf(pkg string) (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.pkg == pkg })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// refused says why a package may not import another of ours, empty when it may.
func refused(r row, to string) string {
	for _, p := range parted {
		if r.pkg == p.a && to == p.b || r.pkg == p.b && to == p.a {
			return p.why
		}
	}
	target, ok := rowOf(to)
	if !ok {
		return "it has no row in the import table"
	}
	if strings.HasPrefix(r.pkg, rooms) && (strings.HasPrefix(to, rooms) || to == "session") {
		return "rooms know each other, and the session, by the ports of package room only"
	}
	if r.pkg == "session" && strings.HasPrefix(to, rooms) {
		return "a session finds its rooms by the interfaces of package room only"
	}
	at := func(name string) int { return slices.IndexFunc(table, func(r row) bool { return r.pkg == name }) }
	if at(to) >= at(r.pkg) {
		return "imports point down only"
	}
	if target.test && !r.test {
		return "it is for tests only"
	}
	if to == "tidemark" || to == "internal/json" {
		return ""
	}
	if r.may == "*" && !slices.Contains(strings.Fields(r.not), to) || slices.Contains(strings.Fields(r.may), to) {
		return ""
	}
	return r.why
}

// edges counts those of a chain, but for those between two packages of cmd.
func edges(chain []string) (n int) {
	for i := 1; i < len(chain); i++ {
		if !strings.HasPrefix(chain[i-1], "cmd/") || !strings.HasPrefix(chain[i], "cmd/") {
			n++
		}
	}
	return n
}

// longest returns the longest chain of imports among our packages. A cycle ends where it closes.
func longest(g Graph) []string {
	memo := map[string][]string{}
	var walk func(string, map[string]bool) []string
	walk = func(pkg string, on map[string]bool) []string {
		if c, ok := memo[pkg]; ok || on[pkg] {
			return c
		}
		on[pkg] = true
		var best []string
		for _, path := range g[pkg] {
			if to := Short(path); to != "" {
				if c := walk(to, on); edges(append([]string{pkg}, c...)) > edges(append([]string{pkg}, best...)) {
					best = c
				}
			}
		}
		on[pkg] = false
		memo[pkg] = append([]string{pkg}, best...)
		return memo[pkg]
	}
	names := make([]string, 0, len(g))
	for p := range g {
		names = append(names, p)
	}
	sort.Strings(names)
	var best []string
	for _, p := range names {
		if c := walk(p, map[string]bool{}); edges(c) > edges(best) {
			best = c
		}
	}
	return best
}
