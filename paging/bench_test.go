package paging

import (
	"fmt"
	"strings"
	"testing"
)

// long makes a session of reads and commands whose results have some 7 KB.
func long(requests int) []byte {
	var b strings.Builder
	b.WriteString(`{"session":"long","steps":[{"append":[{"role":"user","content":"go"}]}`)
	for q := range requests - 1 {
		tool := "Read"
		if q%3 == 0 {
			tool = "Bash"
		}
		text := strings.Repeat(`     1\tfunc f() { return \"x\" }\n`, 80+q*37%300)
		fmt.Fprintf(&b, `,{"append":[{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"t%d","name":"%s","input":{"file_path":"/src/f%d.go"}}]},`, q, tool, q%40)
		fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}]}`, q, text)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// BenchmarkReplay shows that the time is linear in the requests: the time of each stays.
func BenchmarkReplay(b *testing.B) {
	for _, n := range []int{100, 400, 1600} {
		line := long(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := Scanner{Tools: DefaultTools()}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				session, err := s.Session(line)
				if err != nil {
					b.Fatal(err)
				}
				r := Replay{Options: Options{Policy: "fifo"}}
				if err := r.Run(session); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
}
