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
	for _, policy := range []string{"fifo", "lru", "cost"} {
		for _, n := range []int{100, 400, 1600} {
			line := long(n)
			b.Run(fmt.Sprint(policy, "/", n), func(b *testing.B) {
				b.SetBytes(int64(len(line)))
				b.ReportAllocs()
				for b.Loop() {
					replayLine(b, policy, line)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
			})
		}
	}
}

// BenchmarkReplayMany replays 100 sessions of 400 requests each, of all profiles.
func BenchmarkReplayMany(b *testing.B) {
	const sessions, requests = 100, 400
	var lines [][]byte
	total := 0
	for i := range sessions {
		lines = append(lines, Profile(Profiles()[i%len(Profiles())], requests, 2000+i))
		total += len(lines[i])
	}
	for _, policy := range []string{"fifo", "cost"} {
		b.Run(policy, func(b *testing.B) {
			b.SetBytes(int64(total))
			for b.Loop() {
				for _, line := range lines {
					replayLine(b, policy, line)
				}
			}
			b.ReportMetric(float64(b.N*sessions*requests)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// replayLine reads a session and runs it.
func replayLine(b *testing.B, policy string, line []byte) {
	b.Helper()
	s := Scanner{Tools: DefaultTools()}
	session, err := s.Session(line)
	if err != nil {
		b.Fatal(err)
	}
	r := Replay{Options: Options{Policy: policy}}
	if err := r.Run(session); err != nil {
		b.Fatal(err)
	}
}
