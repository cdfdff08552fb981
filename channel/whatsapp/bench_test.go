package whatsapp

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDecode reads one message, and the largest webhook that Meta posts.
func BenchmarkDecode(b *testing.B) {
	one := said(`"type":"text","text":{"body":"hi \u00e9"}`)
	var fields []string
	for i := range 1000 {
		fields = append(fields, fmt.Sprintf(`"messages":[{"from":"1555%d","id":"wamid.%d","timestamp":"1795200000","type":"text","text":{"body":%q}}]`, i%50, i, strings.Repeat("x", 2500)))
	}
	for _, row := range []struct {
		name string
		body []byte
	}{{"one", one}, {"batch", hook(fields...)}} {
		b.Run(row.name, func(b *testing.B) {
			c := New(Config{})
			b.SetBytes(int64(len(row.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Decode(row.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerify is what stands before the receipt of a webhook.
func BenchmarkVerify(b *testing.B) {
	body := said(`"type":"text","text":{"body":"` + strings.Repeat("x", 1000) + `"}`)
	c := New(Config{AppSecret: "s3cret"})
	h := map[string][]string{signatureHeader: {sign("s3cret", body)}}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := c.Verify(h, body); err != nil {
			b.Fatal(err)
		}
	}
}
