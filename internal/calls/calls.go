// Package calls has the rules of what a trim leaves of a call and of its result, for the trims of a session and of a
// session log (papers/cmv §3.2). It shortens nothing itself. Begin with [Most]; a session, which may have any client's tools,
// knows some names more.
package calls

import (
	"math"
	"slices"
)

// Thresholds over which a result or an input is cut, in UTF-16 units.
const (
	DefaultThreshold = 500
	MinThreshold     = 50
)

// Threshold is the one that holds where n is asked for: 0 is the default, and less than the least acts as that.
func Threshold(n int) int {
	if n == 0 {
		return DefaultThreshold
	}
	return max(n, MinThreshold)
}

// Most is how long a string of an input may be and stay, in a field of that name so deep: what says what a call does stays
// at the top, and elsewhere up to some thresholds. Clients beside Claude Code may have fields of their own that tell.
func Most(field []byte, depth, threshold int, others ...string) int {
	const times = 10
	switch {
	case Tells(field) && depth == 1:
		return math.MaxInt
	case Tells(field), slices.Contains(others, string(field)):
		return times * threshold
	}
	return threshold
}

// maxField is the longest name that [Tells] knows, in bytes.
const maxField = 13

// Tells reports whether a field says what a call does, such as a path, a command or a pattern, as the paper's trimmer
// names them (papers/cmv §3.2).
func Tells(field []byte) bool {
	if len(field) > maxField {
		return false
	}
	switch string(field) {
	case "file_path", "notebook_path", "command", "description", "pattern", "path", "url", "skill", "args", "replace_all",
		"edit_mode", "cell_type", "cell_id":
		return true
	}
	return false
}
