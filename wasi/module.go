package wasi

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/tidemark-ai/tidemark"
)

// howTo says how a module is built right.
const howTo = "build a command of WASI preview 1: GOOS=wasip1 GOARCH=wasm go build -o tool.wasm, cargo build --target wasm32-wasip1, or tinygo build -target=wasip1 -o tool.wasm"

func wrongModule(format string, args ...any) error {
	return fmt.Errorf("module: %s; %s: %w", fmt.Sprintf(format, args...), howTo, tidemark.ErrInvalid)
}

// checkHead refuses what is no core module before anything is compiled
// (https://webassembly.github.io/spec/core/binary/modules.html#binary-module).
func checkHead(module []byte) error {
	const head = 8
	if len(module) > MaxModule {
		return fmt.Errorf("module: %d bytes, at most %d; leave debug information out (-ldflags=\"-s -w\", strip = true): %w", len(module), MaxModule, tidemark.ErrTooLarge)
	}
	switch {
	case len(module) == 0:
		return wrongModule("the file is empty")
	case !bytes.HasPrefix(module, []byte("\x00asm")):
		switch {
		case bytes.HasPrefix(bytes.TrimSpace(module), []byte("(module")), bytes.HasPrefix(bytes.TrimSpace(module), []byte("(component")):
			return wrongModule("this is WebAssembly as text; wat2wasm makes a module of it")
		case bytes.HasPrefix(module, []byte("\x7fELF")), bytes.HasPrefix(module, []byte("MZ")), bytes.HasPrefix(module, []byte("\xcf\xfa\xed\xfe")):
			return wrongModule("this is a program for this kind of machine, not WebAssembly")
		}
		return wrongModule("this is no WebAssembly")
	case len(module) < head:
		return wrongModule("the file is cut off")
	case module[6] == 1:
		return wrongModule("this is a component (WASI preview 2)")
	case !bytes.Equal(module[4:head], []byte{1, 0, 0, 0}):
		return wrongModule("this is WebAssembly of an unknown version")
	}
	return nil
}

// checkModule refuses a module that is no command of WASI preview 1.
func checkModule(code wazero.CompiledModule) error {
	foreign := map[string]string{} // a module that is imported, and a name of it
	see := func(module, name string) {
		if module != wasi_snapshot_preview1.ModuleName && foreign[module] == "" {
			foreign[module] = name
		}
	}
	for _, f := range code.ImportedFunctions() {
		module, name, _ := f.Import()
		see(module, name)
	}
	for _, m := range code.ImportedMemories() {
		module, name, _ := m.Import()
		see(module, name)
	}
	if len(foreign) > 0 {
		return foreignImports(foreign)
	}
	start, ok := code.ExportedFunctions()["_start"]
	if !ok {
		if _, reactor := code.ExportedFunctions()["_initialize"]; reactor {
			return wrongModule("this is a library (it exports _initialize, not _start); a tool needs a main function, so leave -buildmode=c-shared out")
		}
		return wrongModule("it exports no _start; a tool needs a main function")
	}
	if len(start.ParamTypes())+len(start.ResultTypes()) > 0 {
		return wrongModule("its _start takes or returns something")
	}
	return nil
}

func foreignImports(foreign map[string]string) error {
	names := make([]string, 0, len(foreign))
	for m, n := range foreign {
		names = append(names, fmt.Sprintf("%.40q.%.60q", m, n))
	}
	sort.Strings(names)
	const most = 3
	what := strings.Join(names[:min(len(names), most)], ", ")
	has := func(name string) bool { return foreign[name] != "" }
	switch {
	case has("gojs"), has("go"):
		return wrongModule("it is built with GOOS=js, for a page")
	case has("wasi_unstable"):
		return wrongModule("it is built for an old preview of WASI (it imports %s)", what)
	case has("wbg"), has("__wbindgen_placeholder__"):
		return wrongModule("it is built with wasm-bindgen, for a page (it imports %s)", what)
	case has("env"):
		return wrongModule("it needs a host of its own (it imports %s); with Emscripten build with -sSTANDALONE_WASM", what)
	}
	return wrongModule("it imports %s; only wasi_snapshot_preview1 is there", what)
}

// notCompiled says of a module that does not compile why.
func notCompiled(err error, l limits) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	const long = 300
	text = text[:min(len(text), long)]
	if strings.Contains(text, "pages") && strings.Contains(text, "limit") {
		return fmt.Errorf("module: it begins with more memory than it may have, which is %d MB (memoryMB in the manifest): %s: %w", l.pages/16, text, tidemark.ErrInvalid) //nolint:mnd // pages of a MB
	}
	return wrongModule("it does not compile: %s", text)
}

// refusedError is a module that compiles and is no tool. Another try will not mend it.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }
