package cleanup

// Filter takes the text of one answer piece by piece and parts it from its cleanup blocks. What comes
// out depends on the text alone, never on where it was cut. The zero value is ready.
type Filter struct {
	ops  []Op
	held []byte
}

// Push takes the next piece and returns what of all so far is to be seen now and was not before.
func (f *Filter) Push(piece string) (visible string) { return piece }

// End returns the rest: what was held back and is no block.
func (f *Filter) End() (visible string) { return "" }

// Ops returns the operations of all blocks that are complete.
func (f *Filter) Ops() []Op { return f.ops }

// Held returns how many bytes are held back.
func (f *Filter) Held() int { return len(f.held) }

// Strip parts a whole text.
func Strip(text string) (visible string, ops []Op) {
	var f Filter
	visible = f.Push(text)
	visible += f.End()
	return visible, f.Ops()
}
