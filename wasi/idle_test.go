//go:build !js

// It runs modules by compiled code.

package wasi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdle: instances in advance are few, and given back with the code when nobody calls.
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
		for i := range idleInAll {
			name := fmt.Sprintf("tool%d", i)
			o.add(t, name, module)
			o.says(t, name, `{"do":"say","text":"x"}`, "x")
		}
		synctest.Wait()
		count := func() (live, engines int) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, tool := range o.all {
				if tool.engine != nil {
					engines++
				}
				if len(tool.idle) > idlePerTool {
					t.Errorf("%s: %d wait", tool.Name, len(tool.idle))
				}
			}
			if o.idle > idleInAll {
				t.Errorf("%d wait in all", o.idle)
			}
			return len(o.running), engines
		}
		if live, engines := count(); live != idleInAll || engines != idleInAll {
			t.Errorf("%d instances and %d modules, want %d of each", live, engines, idleInAll)
		}
		time.Sleep(idleTime / 2)
		o.says(t, "tool0", `{"do":"say","text":"x"}`, "x") // it stays in use
		time.Sleep(idleTime/2 + idleTime/5)
		synctest.Wait()
		if live, engines := count(); live != 1 || engines != 1 {
			t.Errorf("%d instances and %d modules stay, want those of tool0", live, engines)
		}
		time.Sleep(idleTime)
		synctest.Wait()
		if live, engines := count(); live != 0 || engines != 0 {
			t.Errorf("%d instances and %d modules stay when nobody calls", live, engines)
		}
		o.says(t, "tool0", `{"do":"say","text":"again"}`, "again")
	})
}
