// Package calls knows what fields of a tool's input are for. The trims of a session and of a session log both keep the
// fields by which the tools of Claude Code say what a call does; the one of a session, where any client's tools are, knows
// some names more.
package calls

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
