package sdk

import (
	"bytes"
	"io"

	"github.com/tidemark-ai/tidemark/mcp"
)

// readable passes messages on line by line, as [mcp.Readable] gives them: the SDK refuses a whole result for one part of
// a type that it does not know. A line may be an event of a stream. One that is longer than most goes on as it is, in the
// pieces in which it comes.
type readable struct {
	io.ReadCloser
	most int

	line []byte // that has not ended
	out  []byte // that nobody has read
	long bool   // the line that comes is over most
	err  error
}

// Read implements io.Reader.
func (r *readable) Read(p []byte) (int, error) {
	const piece = 32 << 10
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		buf := make([]byte, piece)
		n, err := r.ReadCloser.Read(buf)
		r.take(buf[:n])
		if r.err = err; err != nil {
			r.out, r.line = append(r.out, r.mended(r.line)...), nil
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// take takes up what has come.
func (r *readable) take(data []byte) {
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if whole {
			line = data[:len(line)+1]
		}
		data = rest
		r.line = append(r.line, line...)
		if r.long = r.long || len(r.line) > r.most; !r.long && !whole {
			return
		}
		if !r.long {
			r.line = r.mended(r.line)
		}
		r.out = append(r.out, r.line...)
		r.line = r.line[:0]
		r.long = r.long && !whole
	}
}

// mended is a line as it is passed on.
func (r *readable) mended(line []byte) []byte {
	const data = "data:"
	head := line[:0]
	if bytes.HasPrefix(line, []byte(data)) {
		head = line[:len(data)]
	}
	body := bytes.TrimRight(line[len(head):], "\r\n")
	text := mcp.Readable(body)
	if r.long || bytes.Equal(text, body) {
		return line
	}
	end := line[len(head)+len(body):]
	return append(append(bytes.Clone(head), text...), end...)
}
