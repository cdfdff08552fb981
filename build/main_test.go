package main

import (
	"strings"
	"testing"
)

// TestLinked: each banned function is found among others, and named with its reason.
func TestLinked(t *testing.T) {
	if err := linked([]byte("\x00main.main\x00net/http.(*Request).Cookie\x00")); err != nil {
		t.Errorf("a clean module: %v", err)
	}
	for _, b := range banned {
		err := linked([]byte("\x00main.main\x00" + b.function + "\x00"))
		if err == nil || !strings.Contains(err.Error(), b.function) || !strings.Contains(err.Error(), b.why) {
			t.Errorf("%s: %v", b.function, err)
		}
	}
}
