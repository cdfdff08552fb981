package lint

// The names of the rules, for the table of exceptions.
const (
	ruleTimer    = "timer"    // Go timers and deadlines
	ruleGo       = "go"       // bare goroutines
	ruleState    = "state"    // package variables that can change
	ruleContext  = "context"  // own context.Context types
	ruleBlock    = "block"    // waits that the object does not own
	ruleHTTP     = "http"     // net/http parts that wait on their own
	ruleExit     = "exit"     // ending the whole isolate
	ruleImport   = "import"   // packages that do not belong here
	rulePlatform = "platform" // build tags and syscall/js
	ruleBuild    = "build"    // does not build for the target
)

// reaches names the packages that reach the Worker whether or not cmd/worker links them yet.
// [Reaching] adds what it links.
var reaches = []string{
	"tidemark", "internal/json", "compaction", "archive", "memory", "provider", "session", "reset",
	"agent", "channel", "channel/markup", "channel/telegram", "channel/whatsapp", "config", "setup", "worker", "host", "host/cloudflare", "toolbox", "mcp",
}

// exception lets one package break one rule, for a reason that a reader can judge.
type exception struct {
	pkg  string // as in [Short]
	rule string
	name string // one variable, function or import; empty for all
	why  string
}

// allowed is the table of exceptions. Add a line here, never a comment in the code.
var allowed = []exception{
	{"host/cloudflare", ruleGo, "", "it is the bridge: it implements Runtime.Go and starts one goroutine an event"},
	{"cmd/worker", ruleGo, "", "it is the entry that hands the instance to the bridge"},
	{"internal/gz", ruleState, "writers", "gzip writers are 0.8 MB each; they are pooled, and used in sections that do not wait"},
	{"worker", ruleState, "routed", "a table of routes is 46 KB, more than all else of an idle object; it is filled where it is declared, and a ServeMux only reads while it serves"},
	{"internal/json", ruleImport, "encoding/json", "it is the one import of JSON"},
}

// ban forbids names: "time.Sleep", or "reflect.Value.Method" for a method.
type ban struct {
	rule    string
	names   []string
	why     string
	instead string
}

// calls are the functions, methods, types and variables that code on its way to the Worker may not
// name. One Go instance serves all Durable Objects of an isolate there, so what wakes up later wakes
// up in the event of whichever object comes next.
var calls = []ban{
	{
		ruleTimer,
		[]string{"time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick"},
		"a Go timer fires in the event of another object, or never", "wait with tidemark.Runtime.Sleep",
	},
	{
		ruleTimer,
		[]string{"context.WithTimeout", "context.WithDeadline", "context.WithTimeoutCause", "context.WithDeadlineCause"},
		"it arms a Go timer, which fires in the event of another object", "use tidemark.Runtime.WithTimeout",
	},
	{
		ruleGo, []string{"context.AfterFunc"},
		"it runs the function in a goroutine that no object owns", "select on ctx.Done() where you wait",
	},
	{
		ruleGo, []string{"sync.WaitGroup.Go"},
		"it is a bare go statement", "start it with tidemark.Runtime.Go, which recovers and counts",
	},
	{
		ruleBlock, []string{"iter.Pull", "iter.Pull2"},
		"its coroutine may be resumed in the event of another object", "range over the sequence, or keep a cursor",
	},
	{
		ruleBlock, []string{"io.Pipe"},
		"its two ends need a second goroutine that waits", "write an io.Reader over the wait itself",
	},
	{
		ruleBlock, []string{"bufio.Scanner", "bufio.NewScanner"},
		"a line over its limit ends the stream with an error that says nothing", "use a bounded line reader on bufio.Reader",
	},
	{
		ruleHTTP, []string{"net/http.TimeoutHandler"},
		"it starts a goroutine and a timer", "bound the work with tidemark.Runtime.WithTimeout",
	},
	{
		ruleHTTP, []string{
			"net/http.Client", "net/http.DefaultClient", "net/http.DefaultTransport", "net/http.Transport",
			"net/http.Get", "net/http.Head", "net/http.Post", "net/http.PostForm",
		},
		"there are no sockets, and http.Client has timers and goroutines of its own", "call the http.RoundTripper that the host gives",
	},
	{
		ruleHTTP, []string{"net/http.Server", "net/http.Serve", "net/http.ListenAndServe"},
		"there are no sockets to listen at", "give the host an http.Handler: the shim is the server",
	},
	{
		ruleHTTP, []string{"net/http.Handle", "net/http.HandleFunc", "net/http.DefaultServeMux"},
		"they register in package state that all objects share", "make an http.ServeMux and hand it on",
	},
	{
		ruleExit, []string{
			"os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln",
			"log.Logger.Fatal", "log.Logger.Fatalf", "log.Logger.Fatalln",
		},
		"it ends the work of every object of the isolate", "return an error",
	},
}

// imports are the packages that code on its way to the Worker may not import.
var imports = []ban{
	{ruleImport, []string{"database/sql"}, "its pool waits on locks and goroutines that no object owns", "use tidemark.DB"},
	{ruleImport, []string{"net/http/httputil"}, "ReverseProxy brings http.Transport and timers", "copy the request by hand and call the http.RoundTripper"},
	{ruleImport, []string{"golang.org/x/sync/errgroup"}, "it starts bare goroutines", "start each with tidemark.Runtime.Go and collect on a channel of the object"},
	{ruleImport, []string{"golang.org/x/sync/singleflight"}, "one object would wait for the I/O of another", "deduplicate in the object's own database"},
	{ruleImport, []string{"encoding/json", "github.com/goccy/go-json"}, "JSON has one import, so that both hosts encode alike", "import " + Module + "/internal/json"},
	{ruleImport, []string{"log"}, "its default logger is package state", "take a *slog.Logger as a field, nil allowed"},
	{ruleImport, []string{"os/exec", "plugin", "net/rpc"}, "there is nothing like it in a Worker", "put it in host/native or cmd/tidemark"},
}

// linked are modules and packages that must not be in the Worker's module by any way.
var linked = []ban{
	{ruleImport, []string{"database/sql"}, "its pool waits on locks and goroutines that no object owns", "tidemark.DB"},
	{ruleImport, []string{"github.com/goccy/go-json"}, "its first calls and its start cost more there than it gains: RATIONALE, \"Which libraries\"", "internal/json, which has encoding/json there"},
	{ruleImport, []string{"github.com/aws/"}, "it sends by http.Client; the Worker has R2 by its binding", "the blobs of host/cloudflare"},
	{ruleImport, []string{"modernc.org/"}, "its C library is package state; the Worker has its own SQLite", "the database of host/cloudflare"},
	{ruleImport, []string{"github.com/modelcontextprotocol/"}, "it starts goroutines for each connection", "the wire in code of ours"},
	{ruleImport, []string{"go.opentelemetry.io/", "github.com/prometheus/"}, "package state, and goroutines that export it", "the text writer and OTLP JSON of ours"},
	{ruleImport, []string{"github.com/tetratelabs/wazero"}, "its interpreter inside WASM is 500 times slower", "host/native only"},
}
