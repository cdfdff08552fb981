package transcript

import (
	"bytes"
	"strings"
	"testing"
)

// benchLog is a log of about 32 MB: real ones when there are some, else our own.
func benchLog(b *testing.B) []byte {
	logs := realLogs(b)
	if len(logs) == 0 {
		logs = [][]byte{[]byte(strings.Join(newGenerator(7, 4000).log(3000), "\n") + "\n")}
	}
	var out []byte
	for len(out) < 32<<20 {
		for _, l := range logs {
			out = append(out, l...)
		}
	}
	return out
}

func BenchmarkReading(b *testing.B) {
	log := benchLog(b)
	word := []byte("tool_use")
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("count", func() error { // what grep -c has to do at least
		n := 0
		for rest := log; len(rest) > 0; {
			k := bytes.IndexByte(rest, '\n')
			if bytes.Contains(rest[:k], word) {
				n++
			}
			rest = rest[k+1:]
		}
		return nil
	})
	run("lines", func() error {
		for _, err := range Lines(bytes.NewReader(log), Options{}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	run("messages", func() error {
		for _, err := range Messages(bytes.NewReader(log), Options{}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
}
