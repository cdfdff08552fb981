package paging

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Profiles are the names of the kinds of sessions that [Profile] makes.
func Profiles() []string {
	return []string{"steady", "edit", "workingset", "scan", "rescan", "partial", "errors", "parallel", "chat"}
}

// Profile makes a session of a kind, as the line that [Scanner.Session] reads: of so many requests, with
// results of about so many bytes. The same arguments give the same line. It does not react to what is
// evicted, so its faults are not those of a live session.
func Profile(name string, requests, bytes int) []byte {
	m := &maker{rng: rand.New(rand.NewPCG(uint64(len(name)*1000+requests), uint64(bytes))), bytes: bytes, version: map[string]int{}} //nolint:gosec // made to be repeated
	fmt.Fprintf(&m.b, `{"session":"%s-%d-%d","model":"none","steps":[{"append":[{"role":"user","content":"Please look into the failing build."}]}`, name, requests, bytes)
	for n := range requests - 1 {
		m.b.WriteString(`,{"append":[`)
		switch name {
		case "edit":
			m.edit(n)
		case "workingset":
			m.round(m.read(n%6, ""))
		case "scan":
			m.round(m.read(n, ""))
		case "rescan":
			m.round(m.read(n%30, ""))
		case "partial":
			m.round(m.read(n/12, fmt.Sprintf(`,"offset":%d,"limit":100`, 1+n%9*100)))
		case "errors":
			m.errors(n)
		case "parallel":
			m.round(m.read(3*n, ""), m.read(3*n+1, ""), m.bash(), m.read(n%7, ""))
		case "chat":
			m.chat(n)
		default:
			m.steady(n)
		}
		m.b.WriteString("]}")
	}
	m.b.WriteString("]}")
	return []byte(m.b.String())
}

// maker writes a session.
type maker struct {
	b       strings.Builder
	rng     *rand.Rand
	bytes   int
	calls   int
	version map[string]int
}

// made is a call and its result as JSON.
type made struct{ call, result string }

func (m *maker) made(tool, input, text string, failed bool) made {
	m.calls++
	extra := ""
	if failed {
		extra = `,"is_error":true`
	}
	return made{fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"%s","input":%s}`, m.calls, tool, input),
		fmt.Sprintf(`{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"%s}`, m.calls, text, extra)}
}

// text is so many bytes that are the same for the same name.
func (m *maker) text(name string, bytes int) string {
	line := "     1\\t" + name + " := tide(moon, sun) // as it was measured at the pier\\n"
	return strings.Repeat(line, max(bytes/len(line), 1))
}

// size is a size about the profile's, from a third of it to thrice.
func (m *maker) size() int { return m.bytes/3 + m.rng.IntN(m.bytes*4/3) }

func (m *maker) read(file int, part string) made {
	p := fmt.Sprintf("/pier/src/part%d/file%d.go", file%5, file)
	bytes := m.bytes/3 + file*7919%(m.bytes*4/3)
	return m.made("Read", fmt.Sprintf(`{"file_path":"%s"%s}`, p, part), m.text(fmt.Sprintf("%s%s v%d", p, strings.ReplaceAll(part, `"`, ""), m.version[p]), bytes), false)
}

func (m *maker) bash() made {
	return m.made("Bash", `{"command":"go test ./..."}`, m.text(fmt.Sprint("run ", m.calls), m.size()), false)
}

// round writes the message that calls, and the one with the results.
func (m *maker) round(all ...made) {
	var calls, results []string
	for _, c := range all {
		calls, results = append(calls, c.call), append(results, c.result)
	}
	fmt.Fprintf(&m.b, `{"role":"assistant","content":[{"type":"text","text":"Let me see what stands there."},%s]},{"role":"user","content":[%s]}`,
		strings.Join(calls, ","), strings.Join(results, ","))
}

func (m *maker) steady(n int) {
	switch n % 5 {
	case 1:
		m.round(m.bash())
	case 4:
		m.round(m.read(m.rng.IntN(n), ""))
	default:
		m.round(m.read(n, ""))
	}
}

func (m *maker) edit(n int) {
	file := n / 4
	switch n % 4 {
	case 1:
		p := fmt.Sprintf("/pier/src/part%d/file%d.go", file%5, file)
		m.version[p]++
		m.round(m.made("Edit", fmt.Sprintf(`{"file_path":"%s","old_string":"%s","new_string":"tide"}`, p, m.text("old", 300)), "The file has been updated.", false))
	case 3:
		m.round(m.bash())
	default:
		m.round(m.read(file, ""))
	}
}

func (m *maker) errors(n int) {
	if n%3 == 1 {
		m.round(m.made("Bash", `{"command":"make"}`, m.text(fmt.Sprint("error ", n/6), m.size()/2), true))
		return
	}
	m.steady(n)
}

func (m *maker) chat(n int) {
	if n%4 == 2 {
		m.round(m.read(n, ""))
		return
	}
	fmt.Fprintf(&m.b, `{"role":"assistant","content":"%s"},{"role":"user","content":"%s"}`, m.text("answer", m.bytes/8), m.text("question", m.bytes/20))
}
