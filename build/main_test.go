package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestWeigh: the budget of budget.json is read, and holds to the byte.
func TestWeigh(t *testing.T) {
	var budget struct{ ModuleBytes int }
	if err := json.Unmarshal(budgets, &budget); err != nil || budget.ModuleBytes < 1<<20 {
		t.Fatalf("a budget of %d bytes, %v", budget.ModuleBytes, err)
	}
	most := budget.ModuleBytes
	if err := weigh("app.wasm", make([]byte, most)); err != nil {
		t.Errorf("a module of just its budget: %v", err)
	}
	err := weigh("app.wasm", make([]byte, most+7))
	if err == nil || !strings.Contains(err.Error(), "app.wasm is 7 bytes over") {
		t.Errorf("a module 7 bytes over: %v", err)
	}
}

// TestPut: a file is there whole, and one that is there as it should be is left alone.
func TestPut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.wasm")
	for _, raw := range []string{"one", "another", "another"} {
		was, _ := os.Stat(path)
		if err := put(path, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != raw {
			t.Errorf("%q, %v, want %q", got, err, raw)
		}
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if raw == "another" && was.Size() == now.Size() && !os.SameFile(was, now) {
			t.Error("what was there already was replaced")
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, left %v", err, left)
	}
}
