// Command build makes the Worker: it compiles cmd/worker to WASM, lays it beside the shim and the
// wasm_exec.js of the same toolchain, prints the sizes, and fails when the module is over its budget
// or has something linked that must not be there.
//
//	go run ./build [-main ./cmd/worker] [-tags chaos] [-out dist] [-budget 2850000] [-lines]
//	go run ./build web [-from web] [-out web/dist] [-budget 120000]
//
// With web it bundles the page instead.
// Stack traces of the module name functions; with -lines also files and lines: 0.15 MB more, so give a -budget, too.
// With the tag chaos cmd/worker has doors under …/debug/ that break it, for test/chaos.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// shimFiles are the JavaScript modules of the Worker, in this folder.
var shimFiles = []string{"shim.mjs", "host.mjs", "ops.mjs", "body.mjs", "slots.mjs", "bucket.mjs", "sockets.mjs", "codec.mjs", "workerd.mjs", "front.mjs", "webhook.mjs", "doors.mjs", "proxy.mjs", "route.mjs", "snapshots.mjs", "key.mjs"}

// banned are linked functions that the Worker must do without. A package like crypto/tls is always
// among the imports of net/http, so only the linked module shows whether the code is in.
var banned = []struct{ function, why string }{
	{"net/http.(*Transport).roundTrip", "http.Client or http.Transport is used: there are no sockets; use the RoundTripper of host/cloudflare"},
	{"crypto/tls.Client", "TLS is used: it stands in for itself and fails, see standIns"},
	{"crypto/tls.NewListener", "TLS is used: it stands in for itself and fails, see standIns"},
	{"net/http.(*Client).do", "http.Client is used: it brings timers and TLS; use the RoundTripper of host/cloudflare"},
	{"net/http.(*Server).Serve", "http.Server is used: the shim is the server"},
	{"text/template.(*Template).Execute", "templates keep every method of every type; build text with fmt"},
	{"database/sql.(*DB)", "database/sql starts goroutines of its own; use tidemark.DB"},
	{"github.com/goccy/go-json", "1.0 MB compressed; import internal/json"},
	{"github.com/tetratelabs/wazero", "an interpreter in WASM is 500 times slower; native host only"},
	{chaosDoor, "it has the doors that break it: build without the tag chaos"},
}

// theWorker is what is built unless something else is asked for.
const theWorker = "./cmd/worker"

// chaosDoor is in a module that was built with the tag chaos, and in no other.
const chaosDoor = "main.chaos.fatal"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "web" {
		return bundlePage(args[1:])
	}
	b := builder{}
	flag.StringVar(&b.pkg, "main", theWorker, "package to build")
	flag.StringVar(&b.tags, "tags", "", "build tags, separated by commas")
	flag.StringVar(&b.out, "out", "dist", "folder to build into")
	flag.BoolVar(&b.lines, "lines", false, "keep files and lines of stack traces")
	flag.IntVar(&b.budget, "budget", 2_980_000, "most bytes of the module, gzip -9")
	flag.Parse()
	return b.run()
}

type builder struct {
	pkg, tags, out string
	budget         int
	lines          bool
}

func (b *builder) run() error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	module := filepath.Join(b.out, "app.wasm")
	if err := compile(b.pkg, b.tags, module); err != nil {
		return err
	}
	if err := b.copyScripts(); err != nil {
		return err
	}
	raw, sizes, err := b.finish(module)
	if err != nil {
		return err
	}
	packed, err := gzipSize(raw)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, gzip -9 %d of %d\n", module, len(raw), packed, b.budget)
	if packed > b.budget {
		return fmt.Errorf("%s is %d bytes over its budget; the most code is in%s", module, packed-b.budget, largest(sizes, 5))
	}
	if err := unexpected(sizes); err != nil {
		return err
	}
	if b.pkg == theWorker {
		if err := stale(sizes); err != nil {
			return err
		}
	}
	if slices.Contains(strings.Split(b.tags, ","), "chaos") {
		return chaotic(raw)
	}
	return linked(raw)
}

// finish measures the packages of the compiled module, then tidies it.
func (b *builder) finish(module string) ([]byte, map[string]int, error) {
	raw, err := os.ReadFile(module)
	if err != nil {
		return nil, nil, err
	}
	parts, err := sections(raw)
	if err != nil {
		return nil, nil, err
	}
	packages, err := goSays(worker, "list", "-deps", "-tags="+b.tags, b.pkg)
	if err != nil {
		return nil, nil, err
	}
	sizes, err := codeSizes(parts, strings.Fields(packages))
	if err != nil {
		return nil, nil, err
	}
	if raw, err = tidy(raw, parts, b.lines); err != nil {
		return nil, nil, err
	}
	return raw, sizes, os.WriteFile(module, raw, 0o644)
}

// chaotic reports a module that lacks the doors it was built for: then the ban on them proves nothing.
func chaotic(raw []byte) error {
	if !bytes.Contains(raw, []byte(chaosDoor)) {
		return fmt.Errorf("the module lacks %s: name the door that cmd/worker/chaos_js.go has now", chaosDoor)
	}
	return nil
}

func compile(pkg, tags, module string) error {
	temp, err := os.MkdirTemp("", "build")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	over, err := overlay(temp)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-ldflags=-w", "-tags=" + tags, "-overlay=" + over}, inlining...)
	cmd := exec.Command("go", append(args, "-o", module, pkg)...)
	cmd.Env = append(os.Environ(), worker...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile %s: %w", pkg, err)
	}
	return nil
}

// copyScripts lays the shim and the toolchain's own loader beside the module; the loader must be of
// the very version that compiled it.
func (b *builder) copyScripts() error {
	root, err := goSays(nil, "env", "GOROOT")
	if err != nil {
		return err
	}
	folder, err := goSays(nil, "list", "-f", "{{.Dir}}", "github.com/tidemark-ai/tidemark/build")
	if err != nil {
		return err
	}
	from := []string{filepath.Join(root, "lib", "wasm", "wasm_exec.js")}
	for _, f := range shimFiles {
		from = append(from, filepath.Join(folder, f))
	}
	for _, f := range from {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(b.out, filepath.Base(f)), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func gzipSize(raw []byte) (int, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(raw); err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return packed.Len(), nil
}

// linked looks for banned functions; their names stay in the module's tables for stack traces.
func linked(raw []byte) error {
	var found []string
	for _, b := range banned {
		if bytes.Contains(raw, []byte(b.function)) {
			found = append(found, b.function+": "+b.why)
		}
	}
	if found != nil {
		return fmt.Errorf("the module links what it must not:\n  %s", strings.Join(found, "\n  "))
	}
	return nil
}

// worker is the target.
var worker = []string{"GOOS=js", "GOARCH=wasm"}

// inlining is off but where the time goes: it costs 0.2 MB of the compressed module (2.69 against
// 2.88 MB measured), and size is the strictest budget of a Worker.
var inlining = []string{"-gcflags=all=-l", "-gcflags=encoding/json=", "-gcflags=compress/flate=", "-gcflags=unicode/utf8=", "-gcflags=bytes="}
