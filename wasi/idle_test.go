//go:build !js

// It runs modules by compiled code.

package wasi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdle: the code of modules is given back when nobody calls.
func TestIdle(t *testing.T) {
	if testing.Short() {
		t.Skip("make soak")
	}
	module := hostile(t)
	dir, err := sharedCache()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := openHome(t, t.TempDir())
		o.compiler.cache.dir = dir
		const tools = 4
		for i := range tools {
			name := fmt.Sprintf("tool%d", i)
			o.add(t, name, module)
			o.says(t, name, `{"do":"say","text":"x"}`, "x")
		}
		synctest.Wait()
		count := func() (engines int) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, tool := range o.all {
				if tool.engine != nil {
					engines++
				}
			}
			return engines
		}
		if n := count(); n != tools {
			t.Errorf("%d modules, want %d", n, tools)
		}
		time.Sleep(idleTime / 2)
		o.says(t, "tool0", `{"do":"say","text":"x"}`, "x") // it stays in use
		time.Sleep(idleTime/2 + idleTime/5)
		synctest.Wait()
		if n := count(); n != 1 {
			t.Errorf("%d modules stay, want that of tool0", n)
		}
		time.Sleep(idleTime)
		synctest.Wait()
		if n := count(); n != 0 {
			t.Errorf("%d modules stay when nobody calls", n)
		}
		o.says(t, "tool0", `{"do":"say","text":"again"}`, "again")
	})
}
