package compaction

// OrientationName is what overlays call the words that a branch is told before everything else.
const OrientationName = "orientation"

// Lead reports an item that an insertion put there: it stands for no entry, so no plan can take it away, and no summary
// is of it.
func (i Item) Lead() bool { return i.Overlay != "" && i.To == "" }

// led returns a view without what was inserted before its first entry, whose tokens no plan can free.
func (v View) led() View {
	n := 0
	for n < len(v.Items) && v.Items[n].Lead() {
		v.Fixed += v.Items[n].Tokens
		n++
	}
	v.Items = v.Items[n:]
	return v
}
