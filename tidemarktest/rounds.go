package tidemarktest

import (
	"os"
	"runtime"
	"strconv"
	"testing"
)

// Rounds is how many random rounds a test plays: n, a quarter with -short (make test) and of the ten times slower
// js/wasm, and TIDEMARK_ROUNDS times as many where that is set (make soak).
func Rounds(n int) int {
	if runtime.GOOS == "js" || testing.Short() {
		n = max(n/4, 1)
	}
	if times, err := strconv.Atoi(os.Getenv("TIDEMARK_ROUNDS")); err == nil && times > 1 {
		n *= times
	}
	return n
}
