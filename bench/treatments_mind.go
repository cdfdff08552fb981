package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// The tools of ours that a model may find in a request.
const (
	releaseTool = "memory_release"
	faultTool   = "memory_fault"
	cleanupTag  = "memory_cleanup"
)

// Finished files of which a model that is asked to says that it needs them no longer.
const finishedFiles = 3

// simReply is one reply of a model.
type simReply struct {
	text  string
	tags  string // behind the text: what is not for the client
	calls []calling
	stop  bool // its turn ends
}

// plain is a reply as a client is to see it: without tags and calls of our tools. White space does not count.
func (r *simReply) plain() string {
	s := r.text
	for _, c := range r.calls {
		if !strings.HasPrefix(c.name, "memory_") {
			s += c.name + string(c.input)
		}
	}
	return squeezed(s)
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

type calling struct {
	name  string
	input []byte
}

// mind is the model of one thread of the session: it does the steps of a plan, and looks into the request for what it
// needs. Where a stub stands for that it has it back by memory_fault, or by another read where nobody offers that.
type mind struct {
	p        *plan
	name     string
	steps    []deedOf
	at       int
	tries    int // for the fact that is needed now
	finished []string
	known    map[int]string // facts that a sub-agent is going to report
	tags     bool           // it spoke by tags last

	missing  int // facts that had left when they were needed
	restored int // had back by memory_fault
	reread   int // by a read
	released int // times it let something go
	unknown  int // facts that it never had back
}

// visible finds the value of a fact in the messages, "" where it is not to be seen.
func (a *apiAsk) visible(file int) string {
	head := []byte(factOf(file))
	for i := len(a.Messages) - 1; i >= 0; i-- {
		raw := a.Messages[i].Content
		if at := bytes.Index(raw, head); at >= 0 && len(raw) >= at+len(head)+6 {
			return string(raw[at+len(head) : at+len(head)+6])
		}
	}
	return ""
}

// offers reports whether a request has a tool.
func (a *apiAsk) offers(tool string) bool {
	name := []byte(`"name":"` + tool + `"`)
	return slices.ContainsFunc(a.Tools, func(t json.RawMessage) bool { return bytes.Contains(t, name) })
}

// last is the newest message.
func (a *apiAsk) last() []byte {
	if len(a.Messages) == 0 {
		return nil
	}
	return a.Messages[len(a.Messages)-1].Content
}

func call(name string, input any) calling {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err) // strings and numbers
	}
	return calling{name, raw}
}

// next is the reply to a request.
func (m *mind) next(a *apiAsk) simReply {
	if m.at >= len(m.steps) {
		return simReply{text: "Nothing is left to do.", stop: true}
	}
	s := m.steps[m.at]
	if s.what == needs {
		if back, away := m.want(a, s.file); away {
			return back
		}
	}
	if s.what == stops && m.name != "main" {
		if back, away := m.gather(a); away {
			return back
		}
	}
	m.at++
	out := m.do(a, s)
	m.cooperate(a, &out)
	return out
}

// want is how the model has a fact back that it does not see. away is false once it does, or has given up.
func (m *mind) want(a *apiAsk, file int) (out simReply, away bool) {
	if a.visible(file) != "" {
		switch {
		case m.tries == 1 && a.offers(faultTool):
			m.restored++
		case m.tries > 0:
			m.reread++
		}
		return simReply{}, false
	}
	m.tries++
	path := fileName(file)
	switch fault := a.offers(faultTool); {
	case m.tries == 1 && fault:
		m.missing++
		return simReply{text: "I need that file once more.", calls: []calling{call(faultTool, map[string]any{"paths": []string{path}})}}, true
	case m.tries == 1, m.tries == 2 && fault:
		if !fault {
			m.missing++
		}
		return simReply{text: "I read that file once more.", calls: []calling{call("Read", map[string]any{"file_path": path})}}, true
	}
	m.unknown++
	return simReply{}, false
}

// gather looks for all facts that a sub-agent reports.
func (m *mind) gather(a *apiAsk) (out simReply, away bool) {
	if m.known == nil {
		m.known = map[int]string{}
	}
	for _, s := range m.p.sub {
		if _, ok := m.known[s.file]; ok {
			continue
		}
		if out, away = m.want(a, s.file); away {
			break
		}
		m.known[s.file], m.tries = a.visible(s.file), 0
	}
	for _, s := range m.p.sub { // what is seen now need not be looked for later
		if v := a.visible(s.file); v != "" {
			m.known[s.file] = v
		}
	}
	if away {
		return out, true
	}
	return simReply{}, false
}

// do is what the model says and calls for a step.
func (m *mind) do(a *apiAsk, s deedOf) simReply {
	path := fileName(s.file)
	one := func(text, tool string, input map[string]any) simReply {
		return simReply{text: text, calls: []calling{call(tool, input)}}
	}
	switch s.what {
	case reads:
		return one("Let me look at "+path+".", "Read", map[string]any{"file_path": path})
	case rereads:
		return one("", "Read", map[string]any{"file_path": path, "offset": 1, "limit": 12})
	case runs:
		return one("I run the tests.", "Bash", map[string]any{"command": fmt.Sprintf("go test ./part%d", s.n), "description": "Run the tests of a part"})
	case looks:
		return one("", "Grep", map[string]any{"pattern": fmt.Sprintf("gauge%d_", s.n), "path": "/srv/pier"})
	case edits:
		return one("This needs a change.", "Edit", map[string]any{"file_path": path, "old_string": "// end of " + path, "new_string": fmt.Sprintf("// change %d: %s", s.n, strings.Repeat("the tide is checked twice; ", 12))})
	case writes:
		return one("I note it down.", "Write", map[string]any{"file_path": fmt.Sprintf("/srv/pier/notes/%d.md", s.n), "content": strings.Repeat(fmt.Sprintf("Note %d on the tide at the pier.\n", s.n), m.p.bytes/30)})
	case sends:
		out := simReply{text: "Two agents look into it."}
		for i := s.n; i < s.n+2; i++ {
			out.calls = append(out.calls, call("Task", map[string]any{"description": "Look at gauges", "prompt": fmt.Sprintf("Work order sub %d. Read the gauges and report their levels.", i), "subagent_type": "general"}))
		}
		return out
	case needs:
		m.tries = 0
		m.finished = append(m.finished, path)
		return one("Now I know the level.", "Bash", map[string]any{"command": fmt.Sprintf("record %d %s", s.file, a.visible(s.file)), "description": "Record a level"})
	}
	if m.name == "main" {
		return simReply{text: "That part is done.", stop: true}
	}
	text := "The levels are"
	for _, s := range m.p.sub {
		text += fmt.Sprintf(" %d=%s", s.file, m.known[s.file])
	}
	return simReply{text: text, stop: true}
}

// cooperate lets finished files go where the model is told that this helps: by a call in one reply, by tags in the
// next.
func (m *mind) cooperate(a *apiAsk, out *simReply) {
	last := a.last()
	if len(m.finished) < finishedFiles || out.stop || !a.offers(releaseTool) || !bytes.Contains(last, []byte("Call "+releaseTool)) {
		return
	}
	m.tags = !m.tags && bytes.Contains(last, []byte(cleanupTag))
	if m.tags {
		out.tags = "<" + cleanupTag + ">\nrelease: " + strings.Join(m.finished, ", ") + "\n</" + cleanupTag + ">\n"
		if out.text != "" {
			out.tags = "\n" + out.tags
		}
	} else {
		out.calls = append([]calling{call(releaseTool, map[string]any{"paths": m.finished})}, out.calls...)
	}
	m.released++
	m.finished = nil
}
