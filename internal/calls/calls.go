// Package calls knows what the fields of a tool's input are for. It shortens nothing; the trims of a session and of
// a session log keep the fields that it names. Begin with the tables here: a session, which may have any client's tools,
// knows some names more.
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
