package body

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// largeBody is a request of an agent of about 1 MB: 200 messages, half of them with the result of a tool, and 18
// tools. Its changes put 60 stubs in the place of results.
func largeBody(tb testing.TB) ([]byte, Change) {
	tb.Helper()
	var b bytes.Buffer
	b.WriteString(`{"model":"m","stream":true,"system":[{"type":"text","text":"` + strings.Repeat("rule\\n", 3000) + `","cache_control":{"type":"ephemeral"}}],"tools":`)
	b.Write(agentTools(tb))
	b.WriteString(`,"messages":[{"role":"user","content":[{"type":"text","text":"` + reminder(strings.Repeat("z", 2000)) + `"},{"type":"text","text":"do it"}]}`)
	line := strings.Repeat(`   12\tif err != nil { return fmt.Errorf(\"read %s: %w\", name, err) }\n`, 128)
	var c Change
	for n := 1; n < 200; n++ {
		if n%2 == 1 {
			fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"thinking","thinking":"%s","signature":"c2ln"},{"type":"text","text":"next"},{"type":"tool_use","id":"t%d","name":"ReadFile","input":{"path":"/a/b/%d.go"}}]}`, line[:400], n, n)
			continue
		}
		fmt.Fprintf(&b, `,{"role":"user","content":[{"tool_use_id":"t%d","type":"tool_result","content":"%s"}]}`, n-1, line)
		if n <= 120 {
			c.Blocks = append(c.Blocks, BlockChange{n, 0, fmt.Appendf(nil, `{"tool_use_id":"t%d","type":"tool_result","content":"[paged out: 01ABCDEFGHJKMNPQRSTVWXYZ00#0]"}`, n-1)})
		}
	}
	b.WriteString(`],"max_tokens":32000}`)
	return b.Bytes(), c
}

func BenchmarkLargeBody(b *testing.B) {
	raw, c := largeBody(b)
	r, err := Scan(Messages, raw)
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("scan", func() error {
		_, err := Scan(Messages, raw)
		return err
	})
	run("apply", func() error {
		_, err := r.Apply(c)
		return err
	})
	run("scan+apply", func() error {
		r, err := Scan(Messages, raw)
		if err != nil {
			return err
		}
		_, err = r.Apply(c)
		return err
	})
	run("trim", func() error {
		Trimmed(r, c, nil)
		return nil
	})
	run("scan+trim+apply", func() error {
		r, err := Scan(Messages, raw)
		if err != nil {
			return err
		}
		with := c
		with.Trim = Trimmed(r, c, nil)
		_, err = r.Apply(with)
		return err
	})
}
