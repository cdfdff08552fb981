package body

// Trim is what of the static parts of one request is sent short. It is made by [Trimmed].
type Trim struct {
	Tools  Saved // definitions that became stubs
	Skills Saved // lines of skills that stand further up
	Parts  Saved // reminders that stand further up
	// Due lists tools that were called and still are stubs: they are to be whole from the next batch point on.
	Due []string

	of    *Request
	tools []toolEdit    // in order
	texts []BlockChange // whole blocks, with their markers
}

// toolEdit is a definition that goes out short.
type toolEdit struct {
	n   int
	raw []byte
}

// Saved counts what was made shorter, and by how many bytes of the body.
type Saved struct{ Count, Bytes int }

// Trimmed finds what of r can be sent short beside the other changes of c, which are looked at because what a
// change takes away cannot be pointed at. The definitions of all tools but those in restored become stubs:
// tools stand first in the cached prefix, so a tool that is called gets its definition back at a batch point
// only, which is for the caller to say. used are the tools called so far in this history.
func Trimmed(r *Request, c Change, used, restored map[string]bool) *Trim { return &Trim{of: r} }
