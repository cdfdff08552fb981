package main

import (
	"strings"
	"testing"
)

// TestWeigh: the budget of budget.json is read, and holds to the byte.
func TestWeigh(t *testing.T) {
	const most = 40 << 20
	if err := weigh("app.wasm", make([]byte, most)); err != nil {
		t.Errorf("a module of just its budget: %v", err)
	}
	err := weigh("app.wasm", make([]byte, most+7))
	if err == nil || !strings.Contains(err.Error(), "app.wasm is 7 bytes over") {
		t.Errorf("a module 7 bytes over: %v", err)
	}
}
