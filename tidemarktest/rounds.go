package tidemarktest

import (
	"os"
	"runtime"
	"strconv"
)

// Rounds is how many random rounds a test plays: n, of the ten times slower js/wasm a quarter, and
// TIDEMARK_ROUNDS times as many where that is set (make soak).
func Rounds(n int) int {
	if runtime.GOOS == "js" {
		n = max(n/4, 1)
	}
	if times, err := strconv.Atoi(os.Getenv("TIDEMARK_ROUNDS")); err == nil && times > 1 {
		n *= times
	}
	return n
}
