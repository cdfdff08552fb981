package toolbox

import "slices"

// refusal is why a definition is not offered.
type refusal struct{ mark, why string }

// maxRefused bounds how many are remembered.
const maxRefused = maxAll

// Refused leaves a tool out of what is offered, until its definition is another one: the API of the models refused it, and
// with it each request that it stood in. The state says so.
func (b *Box) Refused(name, mark, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused == nil {
		b.refused = map[string]refusal{}
	}
	if _, known := b.refused[name]; known || len(b.refused) < maxRefused {
		b.refused[name] = refusal{mark, cut(Harmless(why), maxSaid)}
	}
}

// offered takes out of some tools those that were refused.
func (b *Box) offered(entries []entry) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.refused) == 0 {
		return entries
	}
	return slices.DeleteFunc(entries, func(e entry) bool { return b.why(e) != "" })
}

// why says why a tool is left out, empty for one that is not. It is called with the lock held.
func (b *Box) why(e entry) string {
	if r := b.refused[e.public]; r.mark == e.mark() {
		return r.why
	}
	return ""
}

// leftOut are the tools of a source that are left out for that, and why.
func (b *Box) leftOut(of *source) (out []string) {
	entries := b.table()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		if why := b.why(e); e.from == of && why != "" {
			out = append(out, cut(Harmless(e.Name), maxName)+": the API of the models refused its definition: "+why)
		}
	}
	return out
}
