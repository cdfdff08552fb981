package lint

// breach is a snippet that breaks one rule; name is what the finding must name.
type breach struct{ rule, name, src string }

// callBreaches break the bans on names, goroutines and types.
var callBreaches = []breach{
	{ruleTimer, "time.Sleep", `import "time"; func f() { time.Sleep(1) }`},
	{ruleTimer, "time.Sleep", `import . "time"; func f() { Sleep(1) }`},
	{ruleTimer, "time.Sleep", `import clock "time"; var nap = clock.Sleep`},
	{ruleTimer, "time.After", `import "time"; func f() { <-time.After(1) }`},
	{ruleTimer, "time.AfterFunc", `import "time"; func f() { time.AfterFunc(1, nil) }`},
	{ruleTimer, "time.NewTimer", `import "time"; func f() { time.NewTimer(1) }`},
	{ruleTimer, "time.NewTicker", `import "time"; func f() { time.NewTicker(1) }`},
	{ruleTimer, "time.Tick", `import "time"; func f() { time.Tick(1) }`},
	{ruleTimer, "context.WithTimeout", `import "context"; func f(c context.Context) { context.WithTimeout(c, 1) }`},
	{ruleTimer, "context.WithTimeoutCause", `import "context"; func f(c context.Context) { context.WithTimeoutCause(c, 1, nil) }`},
	{ruleTimer, "context.WithDeadline", `import ("context"; "time"); func f(c context.Context) { context.WithDeadline(c, time.Now()) }`},
	{ruleTimer, "context.WithDeadlineCause", `import ("context"; "time"); func f(c context.Context) { context.WithDeadlineCause(c, time.Now(), nil) }`},
	{ruleGo, "context.AfterFunc", `import "context"; func f(c context.Context) { context.AfterFunc(c, func() {}) }`},
	{ruleGo, "sync.WaitGroup.Go", `import "sync"; func f() { var w sync.WaitGroup; w.Go(func() {}) }`},
	{ruleGo, "go", `func f() { go f() }`},
	{ruleBlock, "iter.Pull", `import "iter"; func f(s iter.Seq[int]) { iter.Pull(s) }`},
	{ruleBlock, "iter.Pull2", `import "iter"; func f(s iter.Seq2[int, int]) { iter.Pull2(s) }`},
	{ruleBlock, "io.Pipe", `import "io"; func f() { io.Pipe() }`},
	{ruleBlock, "bufio.NewScanner", `import ("bufio"; "io"); func f(r io.Reader) { bufio.NewScanner(r) }`},
	{ruleBlock, "bufio.Scanner", `import "bufio"; type t struct { s bufio.Scanner }`},
	{ruleHTTP, "net/http.TimeoutHandler", `import "net/http"; func f(h http.Handler) { http.TimeoutHandler(h, 1, "") }`},
	{ruleHTTP, "net/http.Client", `import "net/http"; var c http.Client`},
	{ruleHTTP, "net/http.DefaultClient", `import "net/http"; func f(r *http.Request) { http.DefaultClient.Do(r) }`},
	{ruleHTTP, "net/http.DefaultTransport", `import "net/http"; func f() http.RoundTripper { return http.DefaultTransport }`},
	{ruleHTTP, "net/http.Transport", `import "net/http"; func f() http.RoundTripper { return &http.Transport{} }`},
	{ruleHTTP, "net/http.Get", `import "net/http"; func f() { http.Get("") }`},
	{ruleHTTP, "net/http.Head", `import "net/http"; func f() { http.Head("") }`},
	{ruleHTTP, "net/http.Post", `import "net/http"; func f() { http.Post("", "", nil) }`},
	{ruleHTTP, "net/http.PostForm", `import "net/http"; func f() { http.PostForm("", nil) }`},
	{ruleHTTP, "net/http.Handle", `import "net/http"; func f() { http.Handle("", nil) }`},
	{ruleHTTP, "net/http.HandleFunc", `import "net/http"; func f() { http.HandleFunc("", nil) }`},
	{ruleHTTP, "net/http.DefaultServeMux", `import "net/http"; func f() http.Handler { return http.DefaultServeMux }`},
	{ruleHTTP, "net/http.Server", `import "net/http"; var s http.Server`},
	{ruleHTTP, "net/http.Serve", `import "net/http"; func f() { http.Serve(nil, nil) }`},
	{ruleHTTP, "net/http.ListenAndServe", `import "net/http"; func f() { http.ListenAndServe("", nil) }`},
	{ruleExit, "os.Exit", `import "os"; func f() { os.Exit(1) }`},
	{ruleExit, "log.Fatal", `import "log"; func f() { log.Fatal() }`},
	{ruleExit, "log.Fatalf", `import "log"; func f() { log.Fatalf("") }`},
	{ruleExit, "log.Fatalln", `import "log"; func f() { log.Fatalln() }`},
	{ruleExit, "log.Logger.Fatal", `import "log"; func f(l *log.Logger) { l.Fatal() }`},
	{ruleExit, "log.Logger.Fatalf", `import "log"; func f(l *log.Logger) { l.Fatalf("") }`},
	{ruleExit, "log.Logger.Fatalln", `import "log"; func f(l *log.Logger) { l.Fatalln() }`},

	{ruleContext, "own", `import "context"; type own struct { context.Context }`},
	{ruleContext, "hand", `import "time"; type hand struct{}
		func (*hand) Deadline() (t time.Time, ok bool) { return }
		func (*hand) Done() <-chan struct{} { return nil }
		func (*hand) Err() error { return nil }
		func (*hand) Value(any) any { return nil }`},
}

// stateBreaches break the ban on package variables that can change.
var stateBreaches = []breach{
	{ruleState, "n", `var n int; func f() { n++ }`},
	{ruleState, "n", `var n int; func f() { n = 1 }`},
	{ruleState, "n", `var n int; func f() *int { return &n }`},
	{ruleState, "m", `var m = map[string]int{}; func f() { m["a"] = 1 }`},
	{ruleState, "m", `var m = map[string]int{}; func f() { delete(m, "a") }`},
	{ruleState, "m", `import "maps"; var m = map[string]int{}; func f() { maps.Copy(m, nil) }`},
	{ruleState, "l", `var l = []int{2, 1}; func f() { l[0] = 1 }`},
	{ruleState, "l", `var l = []int{2, 1}; func f() { l = append(l, 1) }`},
	{ruleState, "l", `var l = []int{2, 1}; func f() { _ = append(l[:1], 1) }`},
	{ruleState, "l", `var l = []int{2, 1}; func f() { copy(l[1:], l) }`},
	{ruleState, "l", `import "slices"; var l = []int{2, 1}; func f() { slices.Sort(l) }`},
	{ruleState, "l", `import "sort"; var l = []int{2, 1}; func f() { sort.Ints(l) }`},
	{ruleState, "l", `var l = []int{2, 1}; func init() { for l[0] = range 3 { } }`},
	{ruleState, "s", `type t struct { a struct{ n int } }; var s t; func f() { s.a.n = 1 }`},
	{ruleState, "s", `type t struct { n int }; func (x *t) inc() { x.n++ }; var s t; func f() { s.inc() }`},
	{ruleState, "mu", `import "sync"; var mu sync.Mutex`},
	{ruleState, "pool", `import "sync"; var pool = sync.Pool{}`},
	{ruleState, "once", `import "sync"; var once = sync.OnceValue(func() int { return 1 })`},
	{ruleState, "n", `import "sync/atomic"; var n atomic.Int64`},
	{ruleState, "s", `import "sync"; type t struct { a [2]sync.Mutex }; var s map[string]t`},
	{ruleState, "c", `var c = make(chan int)`},
	{ruleState, "p", `var p = &struct{ n int }{}`},
	{ruleState, "p", `var p = new(int)`},
	{ruleState, "a", `type t struct{ n int }; var a any = &t{}`},
	{ruleState, "l", `type t struct{ n int }; var l = []any{&t{}}`},
	{ruleState, "mux", `import "net/http"; var mux http.Handler = http.NewServeMux()`},
	{ruleState, "ctx", `import "context"; var ctx = context.Background()`},
}
