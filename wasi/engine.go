package wasi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// engine is a module, compiled. It has a runtime of its own: limits of memory are a runtime's.
type engine struct {
	cache wazero.CompilationCache // nil for none
	rt    wazero.Runtime
	code  wazero.CompiledModule
}

func (e *engine) close() {
	ctx := context.Background()
	_ = e.rt.Close(ctx) // only memory is given back
	if e.cache != nil {
		_ = e.cache.Close(ctx)
	}
}

// compiler makes engines, by a cache on disk.
type compiler struct {
	cache cache
	log   *slog.Logger
	once  sync.Once // the cache cannot be written: said
}

// engine compiles a module, or loads what was compiled before.
//
// # Errors
//
// tidemark.ErrInvalid for a module that is none of ours.
func (c *compiler) engine(ctx context.Context, module []byte, l limits) (*engine, error) {
	if err := checkHead(module); err != nil {
		return nil, err
	}
	if c.cache.dir == "" {
		return compile(ctx, module, l, "")
	}
	entry := c.cache.entry(module)
	if c.cache.sound(entry) {
		e, err := compile(ctx, module, l, entry)
		if err == nil || ctx.Err() != nil {
			return e, err
		}
		c.cache.remove(entry) // what wrote it was another version, say
	}
	dir, err := c.cache.fresh()
	if err != nil {
		return c.without(ctx, module, l, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // when it has no name yet
	e, err := compile(ctx, module, l, dir)
	if err != nil {
		if refused := (*refusedError)(nil); ctx.Err() != nil || errors.As(err, &refused) {
			return nil, err
		}
		return c.without(ctx, module, l, err) // was it the module, or the disk?
	}
	if err := c.cache.keep(dir, entry); err != nil {
		c.tell(err)
	}
	return e, nil
}

// without compiles without a cache.
func (c *compiler) without(ctx context.Context, module []byte, l limits, why error) (*engine, error) {
	e, err := compile(ctx, module, l, "")
	if err == nil {
		c.tell(why)
	}
	return e, err
}

// tell says once that the cache cannot be used.
func (c *compiler) tell(why error) {
	c.once.Do(func() {
		c.log.Warn("compiled modules are not kept, so each start compiles them again: make the folder writable", "cache", c.cache.dir, "err", why)
	})
}

// compile does the work, with a folder where wazero looks for code and keeps it.
func compile(ctx context.Context, module []byte, l limits, dir string) (*engine, error) {
	e := &engine{}
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithCloseOnContextDone(true).
		WithMemoryLimitPages(l.pages).WithDebugInfoEnabled(false)
	if dir != "" {
		var err error
		if e.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(e.cache)
	}
	e.rt = wazero.NewRuntimeWithConfig(ctx, config)
	var err error
	if e.code, err = e.rt.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module); err != nil {
		e.close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, notCompiled(err, l)
	}
	if err := checkModule(e.code); err != nil {
		e.close()
		return nil, &refusedError{err}
	}
	_, err = wasi_snapshot_preview1.Instantiate(ctx, e.rt)
	if err != nil {
		e.close()
		return nil, fmt.Errorf("prepare WASI: %w", err)
	}
	there := e.rt.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions()
	for _, f := range e.code.ImportedFunctions() {
		if _, name, _ := f.Import(); there[name] == nil {
			e.close()
			return nil, &refusedError{wrongModule("it imports wasi_snapshot_preview1.%.60q, which there is not", name)}
		}
	}
	return e, nil
}
