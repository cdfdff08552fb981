package tidemark_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestSentinels: what crosses between two objects as text is the same error on the other side, each of
// those that errors.go declares.
func TestSentinels(t *testing.T) {
	src, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`\tErr\w+\s*=\s*errors\.New\("(.+?)"\)`).FindAllSubmatch(src, -1)
	if len(declared) < 10 {
		t.Fatalf("%d errors are declared", len(declared))
	}
	for _, d := range declared {
		is := tidemark.SentinelOf(string(d[1]))
		if is == nil || !errors.Is(tidemark.Sentinel(fmt.Errorf("do it: %w", is)), is) {
			t.Errorf("%s is %v on the other side", d[1], is)
		}
	}
	if tidemark.Sentinel(os.ErrExist) != nil || tidemark.SentinelOf("") != nil {
		t.Error("an error of others is one of ours")
	}
}
