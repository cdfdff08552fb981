//go:build !js

// The tests of this file wait, which timers do not do under js/wasm.

package toolbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
	"github.com/tidemark-ai/tidemark/toolbox"
)

// TestRetries: only what may be called again is, only after failures on the way, within the time of the call.
func TestRetries(t *testing.T) {
	hinted := tool("hinted", "", object)
	hinted.Idempotent = true
	for _, k := range []struct {
		name, tool string
		trust      bool
		err        error
		calls      int
	}{
		{"named in the configuration", "read", false, tidemark.ErrUnavailable, 3},
		{"not named", "write", false, tidemark.ErrUnavailable, 1},
		{"a hint that is not trusted", "hinted", false, tidemark.ErrUnavailable, 1},
		{"a hint that is trusted", "hinted", true, tidemark.ErrUnavailable, 3},
		{"refused", "read", false, tidemark.ErrInvalid, 1},
		{"too slow", "read", false, tidemark.ErrTimeout, 1},
	} {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &source{tools: []tidemark.Tool{tool("read", "", object), tool("write", "", object), hinted},
					call: func(context.Context, int, tidemark.Block) (tidemark.Block, error) { return tidemark.Block{}, k.err }}
				b := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(t), Servers: []toolbox.Server{{Name: "s", Source: s, Idempotent: []string{"re*"}, TrustHints: k.trust}}})
				begun := time.Now()
				want(t, b.Call(t.Context(), owner, use("s__"+k.tool)), true)
				if len(s.calls) != k.calls || time.Since(begun) > 2*time.Second {
					t.Errorf("%d calls in %s, want %d", len(s.calls), time.Since(begun), k.calls)
				}
			})
		})
	}
}

// TestSlow: a source that does not answer costs bounded time, and takes nobody with it.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := &source{tools: []tidemark.Tool{tool("f", "", object)}}
		stuck := &stuck{}
		b := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(t), Servers: []toolbox.Server{{Name: "quick", Source: quick}, {Name: "stuck", Source: stuck, Timeout: 3 * time.Second}}})
		begun := time.Now()
		tools, missing := b.Tools(t.Context(), owner)
		if !slices.Equal(names(tools), []string{"quick__f"}) || !slices.Equal(missing, []string{"stuck"}) || time.Since(begun) > 10*time.Second {
			t.Errorf("%q, missing %q, after %s", names(tools), missing, time.Since(begun))
		}
		begun = time.Now()
		b.Tools(t.Context(), owner)
		if time.Since(begun) != 0 {
			t.Errorf("a source that has just failed is waited for again: %s", time.Since(begun))
		}
		want(t, b.Call(t.Context(), owner, use("stuck__f")), true, "not run: the tools of server stuck are not known")
		short, stop := context.WithTimeoutCause(t.Context(), time.Second, tidemark.ErrTimeout)
		defer stop()
		time.Sleep(time.Minute)
		begun = time.Now()
		if tools, _ := b.Tools(short, owner); len(tools) != 1 || time.Since(begun) > time.Second {
			t.Errorf("%q after %s", names(tools), time.Since(begun))
		}
		time.Sleep(time.Minute) // what is in work ends
	})
}

// stuck is a source that never answers by itself.
type stuck struct{}

func (*stuck) Tools(ctx context.Context) ([]tidemark.Tool, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (*stuck) Call(ctx context.Context, _ tidemark.Block) (tidemark.Block, error) {
	<-ctx.Done()
	return tidemark.Block{}, context.Cause(ctx)
}

// TestLists: a list is kept for its time, longer while the source is down, and asked for once for many.
func TestLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{tools: []tidemark.Tool{tool("f", "", object)}, ttl: time.Minute}
		b := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(t), Servers: []toolbox.Server{{Name: "s", Source: s}}})
		done := make(chan int)
		for range 20 {
			go func() { tools, _ := b.Tools(t.Context(), owner); done <- len(tools) }()
		}
		for range 20 {
			if n := <-done; n != 1 {
				t.Errorf("%d tools", n)
			}
		}
		lists := func(n int, when string) {
			t.Helper()
			b.Tools(t.Context(), owner)
			if s.lists != n {
				t.Errorf("%s: asked %d times, want %d", when, s.lists, n)
			}
		}
		lists(1, "at once")
		time.Sleep(59 * time.Second)
		lists(1, "within its time")
		time.Sleep(2 * time.Second)
		lists(2, "behind it")
		s.set(func() { s.change++ })
		lists(3, "when it says that it changed")
		s.set(func() { s.down = tidemark.ErrUnavailable })
		time.Sleep(2 * time.Minute)
		if tools, missing := b.Tools(t.Context(), owner); len(tools) != 1 || len(missing) != 0 {
			t.Errorf("while it is down: %q, missing %q", names(tools), missing)
		}
		if r := b.Report(t.Context(), owner); r.Sources[0].State != "error" || r.Sources[0].Count != 1 {
			t.Errorf("state: %+v", r.Sources[0])
		}
		lists(4, "a moment after it failed")
		want(t, b.Call(t.Context(), owner, use("s__f")), false)
	})
}

// TestParallel: a server has no more calls in work than it may, and one that waits for its turn too long is told so.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, most := make(chan int, 1), 0
		in <- 0
		s := &source{tools: []tidemark.Tool{tool("f", "", object)}, call: func(ctx context.Context, _ int, b tidemark.Block) (tidemark.Block, error) {
			n := <-in + 1
			most = max(most, n)
			in <- n
			time.Sleep(time.Second)
			in <- <-in - 1
			return tidemark.ToolResult(b.ID, "", false), nil
		}}
		b := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(t), Servers: []toolbox.Server{{Name: "s", Source: s, Parallel: 4, Timeout: 5500 * time.Millisecond}}})
		out := make(chan tidemark.Block)
		for range 30 {
			go func() { out <- b.Call(t.Context(), owner, use("s__f")) }()
		}
		failed := 0
		for range 30 {
			if r := <-out; r.IsError {
				failed++
				want(t, r, true, "tools.mcp.s.parallel")
			}
		}
		if most != 4 || failed != 6 { // six rounds of four begin within the time
			t.Errorf("%d at a time, %d did not begin", most, failed)
		}
	})
}

// BenchmarkToolsOffered is what a turn pays for the list of tools: ten servers of twenty, whole and stubbed.
func BenchmarkToolsOffered(b *testing.B) {
	schema := `{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("what it is ", 20) + `"}},"required":["path"]}`
	var servers []toolbox.Server
	for i := range 10 {
		s := &source{}
		for j := range 20 {
			s.tools = append(s.tools, tool(fmt.Sprintf("tool_%d", j), strings.Repeat("Does a thing. ", 20), schema))
		}
		servers = append(servers, toolbox.Server{Name: fmt.Sprintf("s%d", i), Source: s})
	}
	for _, k := range []struct {
		name   string
		tokens tidemark.Tokens
	}{{"whole", 1_000_000}, {"stubbed", 4_000}} {
		b.Run(k.name, func(b *testing.B) {
			box := toolbox.New(toolbox.Config{Runtime: tidemarktest.NewRuntime(b), Servers: servers, SchemaTokens: k.tokens})
			b.ReportAllocs()
			for b.Loop() {
				if tools, _ := box.Tools(b.Context(), owner); len(tools) < 200 {
					b.Fatal(len(tools))
				}
			}
		})
	}
}
