package cloudflare

import (
	"log/slog"
	"strings"
	"syscall/js"

	"github.com/syumai/workers/cloudflare"
)

// Env is a variable or secret of the Worker's configuration, empty when it is not set. All objects of an
// instance have the same ones, so it may hold them.
func Env(name string) string { return cloudflare.Getenv(name) }

// Environ lists all variables and secrets as os.Environ does; bindings of other kinds are no text. Call
// it while the instance starts, before [Serve].
func Environ() []string {
	entries := js.Global().Get("Object").Call("entries", js.Global().Get("context").Get("env"))
	var out []string
	for i := range entries.Length() {
		if v := entries.Index(i).Index(1); v.Type() == js.TypeString {
			out = append(out, entries.Index(i).Index(0).String()+"="+v.String())
		}
	}
	return out
}

// Bound reports whether the Worker's configuration binds something under a name.
func Bound(name string) bool { return !cloudflare.GetBinding(name).IsUndefined() }

// NewLogger writes JSON lines to the console, which Workers collect.
func NewLogger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(console{}, &slog.HandlerOptions{Level: level}))
}

// console writes to console.log. os.Stderr would call back into Go in the middle of an event.
type console struct{}

func (console) Write(p []byte) (int, error) {
	js.Global().Get("console").Call("log", strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
