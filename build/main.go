// Command build makes the Worker: what `GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w'` makes
// of cmd/worker, unchanged, beside the shim and the wasm_exec.js of the same toolchain. It does not
// deploy (`make deploy` does), and it fails when the module is larger than budget.json allows. Begin
// with main here; the scripts beside it are the Worker's JavaScript, of which shim.mjs comes first.
//
//	go run ./build [-main ./cmd/worker] [-tags chaos] [-out dist]
//	go run ./build web [-from web] [-out web/dist] [-budget 120000]
//
// With web it bundles the page instead. With the tag chaos cmd/worker has doors under …/debug/ that
// break it, for test/chaos.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// shimFiles are the JavaScript modules of the Worker, in this folder.
var shimFiles = []string{"shim.mjs", "host.mjs", "ops.mjs", "body.mjs", "queue.mjs", "slots.mjs", "bucket.mjs", "sockets.mjs", "codec.mjs", "workerd.mjs", "front.mjs", "webhook.mjs", "doors.mjs", "proxy.mjs", "route.mjs", "snapshots.mjs", "key.mjs"}

// budgets says what the platform allows and how much of it the Worker may take. cloud.mjs, test/bench
// and test/e2e read the same file.
//
//go:embed budget.json
var budgets []byte

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
	flag.StringVar(&b.pkg, "main", "./cmd/worker", "package to build")
	flag.StringVar(&b.tags, "tags", "", "build tags, separated by commas")
	flag.StringVar(&b.out, "out", "dist", "folder to build into")
	flag.Parse()
	return b.run()
}

type builder struct{ pkg, tags, out string }

func (b *builder) run() error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	raw, err := compile(b.pkg, b.tags)
	if err != nil {
		return err
	}
	module := filepath.Join(b.out, "app.wasm")
	if err := errors.Join(put(module, raw), b.copyScripts()); err != nil {
		return err
	}
	return weigh(module, raw)
}

// put writes a file in one step, unless it is there as it should be: wrangler builds anew whenever it is asked
// anything, also while something else reads what is there.
func put(path string, raw []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, raw) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// compile makes the module as anybody would by hand; `make same` holds that it is so.
func compile(pkg, tags string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "build")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	module := filepath.Join(dir, "app.wasm")
	args := []string{"build", "-trimpath", "-ldflags=-s -w"}
	if tags != "" {
		args = append(args, "-tags="+tags)
	}
	cmd := exec.Command("go", append(args, "-o", module, pkg)...)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", pkg, err)
	}
	return os.ReadFile(module)
}

// copyScripts lays the shim and the toolchain's own loader beside the module; the loader must be of
// the very version that compiled it.
func (b *builder) copyScripts() error {
	root, err := goSays("env", "GOROOT")
	if err != nil {
		return err
	}
	folder, err := goSays("list", "-f", "{{.Dir}}", "github.com/tidemark-ai/tidemark/build")
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
		if err := put(filepath.Join(b.out, filepath.Base(f)), raw); err != nil {
			return err
		}
	}
	return nil
}

// goSays gives what the go command prints.
func goSays(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// weigh holds the module against its budget.
func weigh(module string, raw []byte) error {
	var budget struct{ ModuleBytes int }
	if err := json.Unmarshal(budgets, &budget); err != nil {
		return fmt.Errorf("read build/budget.json: %w", err)
	}
	fmt.Printf("%s: %d of %d bytes\n", module, len(raw), budget.ModuleBytes)
	if over := len(raw) - budget.ModuleBytes; over > 0 {
		return fmt.Errorf("%s is %d bytes over its budget in build/budget.json", module, over)
	}
	return nil
}
