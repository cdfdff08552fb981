package native

import (
	"os"
	"slices"
	"strings"
)

// BaseEnviron is what of this process's environment a program cannot do without that is started here: none of our
// secrets is in it.
func BaseEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.Contains([]string{"PATH", "HOME", "LANG"}, name)
	})
}
