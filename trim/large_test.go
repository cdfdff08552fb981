package trim

import (
	"context"
	"io"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
)

// madeLine is a log of which one line is too long for any memory, made while it is read.
type madeLine struct {
	head, fill, tail string
	times            int64
}

func (l *madeLine) size() int64 {
	return int64(len(l.head)) + int64(len(l.fill))*l.times + int64(len(l.tail))
}

func (l *madeLine) ReadAt(p []byte, at int64) (n int, err error) {
	body := int64(len(l.fill)) * l.times
	for n < len(p) {
		switch i := at + int64(n) - int64(len(l.head)); {
		case i < 0:
			n += copy(p[n:], l.head[at+int64(n):])
		case i < body:
			n += copy(p[n:min(int64(len(p)), int64(n)+body-i)], l.fill[i%int64(len(l.fill)):])
		case i < body+int64(len(l.tail)):
			n += copy(p[n:], l.tail[i-body:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}

// peak keeps the most memory that the program had.
type peak struct {
	mu   sync.Mutex // guards the following field
	most uint64
}

func (p *peak) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	p.most = max(p.most, s[0].Value.Uint64()-s[1].Value.Uint64())
}

// Cut looks at the memory at a cut.
func (p *peak) Cut(Cut) error {
	p.look()
	return nil
}

// watched looks at the memory at every greater reading.
type watched struct {
	io.ReaderAt
	p *peak
}

func (w watched) ReadAt(b []byte, at int64) (int, error) {
	if int64(len(b)) >= usual.piece {
		w.p.look()
	}
	return w.ReaderAt.ReadAt(b, at)
}

func TestLinesOfAnyLength(t *testing.T) {
	size := int64(600 << 20)
	if testing.Short() {
		size = 24 << 20
	}
	const most = 64 << 20
	word := strings.Repeat("base64+/", 1<<10)
	block := `{"type":"thinking","thinking":"x"},`
	copied := strings.TrimSuffix(result("t1", `"x"`), "}") + `,"toolUseResult":{"stdout":"`
	for name, l := range map[string]*madeLine{
		"picture": {head: user("a") + "\n" + `{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`,
			fill: word, tail: `"}},{"type":"text","text":"b"}]}}` + "\n" + user("c")},
		"result": {head: called("t1", "Bash", `{"command":"x"}`) + "\n" + `{"message":{"content":[{"content":"`, fill: word,
			tail: `","type":"tool_result","tool_use_id":"t1"}],"role":"user"},"type":"user"}`},
		"copy":     {head: called("t1", "Bash", `{}`) + "\n" + copied, fill: word, tail: `"}}` + "\n"},
		"no JSON":  {head: `{"type":"user","message":"`, fill: word, tail: "\x01\"}\n" + user("c")},
		"one text": {head: `{"type":"user","message":{"role":"user","content":"`, fill: word, tail: `"}}`},
		"blocks":   {head: `{"type":"assistant","message":{"role":"assistant","content":[`, fill: strings.Repeat(block, 64), tail: `{"type":"text","text":"b"}]}}`},
		"lines":    {head: user("a") + "\n", fill: strings.Repeat("null\n\n{}\n", 512), tail: user("b")},
	} {
		t.Run(name, func(t *testing.T) {
			l.times = size / int64(len(l.fill))
			if name == "blocks" || name == "lines" {
				l.times /= 8
			}
			debug.FreeOSMemory() // what other tests took and left would count, too
			p := &peak{}
			m, err := Trim(context.Background(), watched{l, p}, l.size(), io.Discard, p, Options{TempDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			kept := name == "no JSON" || name == "one text" || name == "lines"
			if (m.TrimmedBytes > 1<<20) != kept {
				t.Errorf("%d bytes of %d are left", m.TrimmedBytes, l.size())
			}
			if m.TrimmedBytes < int64(len(l.tail)) && name != "copy" || m.LinesEmptied > 0 {
				t.Errorf("only %d bytes are left", m.TrimmedBytes)
			}
			if p.most > most {
				t.Errorf("%d MiB of memory", p.most>>20)
			}
			t.Logf("%d MiB, %d bytes left", p.most>>20, m.TrimmedBytes)
		})
	}
}
