package cloudflare

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall/js"

	"github.com/syumai/workers/cloudflare"
	"github.com/tidemark-ai/tidemark"
)

// Transport is an http.RoundTripper over fetch. The request's body is read whole and sent with its
// length (stores that sign it refuse a stream); the answer's body streams. When the request's
// context ends, until the body has been read to its end, the exchange is aborted. Redirects are not
// followed.
type Transport struct {
	o     *Obj
	space js.Value // the binding of a namespace of objects, null for the network
	name  string
}

var _ http.RoundTripper = (*Transport)(nil)

// maxUpload bounds a request's body, which is held twice while it crosses.
const maxUpload = 16 << 20

// Transport reaches the network.
func (o *Obj) Transport() *Transport { return &Transport{o: o, space: js.Null()} }

// Peer reaches the object of a name in a bound namespace, by the same requests as from outside.
func (o *Obj) Peer(namespace, name string) *Transport {
	return &Transport{o: o, space: cloudflare.GetBinding(namespace), name: name}
}

// RoundTrip sends a request. An error means that there is no answer; it names the host, not the
// whole URL, which may carry a key.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.send(req)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", req.URL.Host, err)
	}
	return res, nil
}

func (t *Transport) send(req *http.Request) (*http.Response, error) {
	payload, err := upload(req)
	if err != nil {
		return nil, err
	}
	row := append([]any{t.name, req.Method, req.URL.String()}, flatten(req.Header)...)
	v, err := t.o.await(req.Context(), "fetchOut", t.space, toBytes(packRows(row)), payload)
	if err != nil {
		return nil, err
	}
	return t.o.response(req, v)
}

// response reads the row [body number, status, ...headers].
func (o *Obj) response(req *http.Request, v js.Value) (*http.Response, error) {
	rows, err := unpackRows(fromBytes(v))
	if err != nil || len(rows) != 1 || len(rows[0]) < 2 {
		return nil, errWire
	}
	head := rows[0]
	res := &http.Response{
		StatusCode: int(head.Int(1)), Request: req, ContentLength: -1,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: headerOf(head[2:]), Body: newBody(req.Context(), o, int(head.Int(0))),
	}
	res.Status = strconv.Itoa(res.StatusCode) + " " + http.StatusText(res.StatusCode)
	settleLength(res)
	return res, nil
}

// settleLength says what of the length still holds: fetch has already undone a content encoding.
func settleLength(res *http.Response) {
	if res.Header.Get("Content-Encoding") != "" {
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
		res.Uncompressed = true
		return
	}
	if n, err := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		res.ContentLength = n
	}
}

// upload reads a request's body; none is nil.
func upload(req *http.Request) (any, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer req.Body.Close()
	var b bytes.Buffer
	if req.ContentLength > 0 && req.ContentLength <= maxUpload { // else it grows by copies
		b.Grow(int(req.ContentLength) + bytes.MinRead)
	}
	n, err := io.Copy(&b, io.LimitReader(req.Body, maxUpload+1))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if n > maxUpload {
		return nil, fmt.Errorf("body is over %d bytes: %w", maxUpload, tidemark.ErrTooLarge)
	}
	return toBytes(b.Bytes()), nil
}

// flatten gives headers as pairs.
func flatten(h http.Header) []any {
	var flat []any
	for k, values := range h {
		for _, v := range values {
			flat = append(flat, k, v)
		}
	}
	return flat
}

// headerOf reads pairs.
func headerOf(flat tidemark.Row) http.Header {
	h := make(http.Header, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		h.Add(flat.Text(i), flat.Text(i+1))
	}
	return h
}
