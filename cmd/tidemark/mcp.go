package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
)

const (
	maxMCPLine  = 8 << 20 // bytes of a message; the door's own bound is smaller, and says so
	maxMCPWork  = 32      // messages in work at once; more wait to be read
	mcpLastWait = 10 * time.Second
)

// Codes of JSON-RPC that are told here and not by the door.
const (
	rpcTooLong = -32700
	rpcNoDoor  = -32000
)

// mcp passes messages on until the input ends or somebody ends this process.
func mcp(ctx context.Context, m *cli.Main) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	b := &bridge{m: m, work: map[string]context.CancelFunc{}}
	if err := b.open(ctx); err != nil {
		return err
	}
	err := b.run(ctx)
	return errors.Join(err, b.end())
}

// bridge passes the messages of one client on to the door.
type bridge struct {
	m *cli.Main

	door sync.RWMutex // guards the following two
	c    *client
	end  func() error // gives up what c stands on

	out  sync.Mutex // is held while a message is written
	mu   sync.Mutex // guards work
	work map[string]context.CancelFunc
}

// open finds the door. A store that nobody serves is served to others as long as it is open here.
func (b *bridge) open(ctx context.Context) error {
	c, err := connect(ctx, b.m)
	if err != nil {
		return err
	}
	b.c, b.end = c, c.end
	if c.local == nil {
		return nil
	}
	if err := c.ready(); err != nil { // what needs no model works all the same
		b.say("send_message will fail: %v", err)
	}
	_, end, err := serveStore(context.WithoutCancel(ctx), c.local)
	if err != nil {
		return errors.Join(err, c.end())
	}
	b.end = func() error { return errors.Join(end(), c.end()) }
	return nil
}

// run reads messages and has each carried out by itself: one that waits holds none up.
func (b *bridge) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { failed <- messageLines(ctx, b.m.Stdin, lines) }()
	room := make(chan struct{}, maxMCPWork)
	var all sync.WaitGroup
	for {
		select {
		case <-ctx.Done():
			cancel()
			all.Wait()
			return nil
		case err := <-failed:
			b.last(&all, cancel)
			return err
		case line := <-lines:
			room <- struct{}{}
			h := headOf(line)
			own := b.begin(ctx, h)
			all.Go(func() {
				defer func() { <-room }()
				b.pass(own, line, h)
			})
		}
	}
}

// last lets what is in work end when nothing more comes, within a bound: the client may be gone.
func (b *bridge) last(all *sync.WaitGroup, cancel context.CancelFunc) {
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(mcpLastWait):
	}
	cancel()
	<-ended
}

// messageLines gives each line that is not empty. One that is too long comes as nil.
func messageLines(ctx context.Context, r io.Reader, to chan<- []byte) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	long := false
	for {
		piece, err := in.ReadSlice('\n')
		if long = long || len(line)+len(piece) > maxMCPLine; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := bytes.TrimSpace(line); len(text) > 0 || long {
			select {
			case to <- text:
			case <-ctx.Done():
				return nil
			}
		}
		line, long = nil, false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
	}
}

// rpcHead is what of a message decides how it is passed on.
type rpcHead struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
		Name    string          `json:"name"`
		URI     string          `json:"uri"`
		Request json.RawMessage `json:"requestId"` // of a cancellation
	} `json:"params"`
}

// headOf reads it. What is no message has none, and the door says what is wrong.
func headOf(line []byte) (h rpcHead) {
	if json.Unmarshal(line, &h) != nil {
		return rpcHead{ID: h.ID}
	}
	return h
}

// begin notes that a request is in work, and ends the one that a cancellation names.
func (b *bridge) begin(ctx context.Context, h rpcHead) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.Method == "notifications/cancelled" {
		if cancel := b.work[string(h.Params.Request)]; cancel != nil {
			cancel()
		}
	}
	if h.ID == nil {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	b.work[string(h.ID)] = cancel
	return ctx
}

// pass has the door carry a message out, and writes what it answers. What was cancelled gets no answer.
func (b *bridge) pass(ctx context.Context, line []byte, h rpcHead) {
	err := b.ask(ctx, line, h)
	gone := ctx.Err() != nil
	if h.ID != nil {
		b.mu.Lock()
		if cancel := b.work[string(h.ID)]; cancel != nil {
			cancel()
			delete(b.work, string(h.ID))
		}
		b.mu.Unlock()
	}
	if err == nil || gone {
		return
	}
	if h.ID == nil && line != nil {
		b.say("%v", err)
		return
	}
	b.refuse(h.ID, rpcNoDoor, err.Error())
}

func (b *bridge) refuse(id json.RawMessage, code int, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
	if err == nil {
		b.write(raw)
	}
}

// say tells a person something: standard output is the protocol's.
func (b *bridge) say(format string, args ...any) {
	b.out.Lock()
	defer b.out.Unlock()
	b.m.Err.Printf("tidemark mcp: "+format+"\n", args...)
}

// write writes one message as a line.
func (b *bridge) write(raw []byte) {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		b.say("the answer is no JSON: %v", err)
		return
	}
	b.out.Lock()
	defer b.out.Unlock()
	_, _ = b.m.Out.Write(append(line.Bytes(), '\n')) // Main.Run reports the first failure
}

// ask sends a message to the door and writes the messages of its answer.
func (b *bridge) ask(ctx context.Context, line []byte, h rpcHead) error {
	if line == nil {
		b.refuse(nil, rpcTooLong, fmt.Sprintf("a message of over %d bytes", maxMCPLine))
		return nil
	}
	resp, where, err := b.post(ctx, line, h)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		answered := false
		err := cli.ReadEvents(resp.Body, func(_ string, data []byte) error {
			var a rpcHead
			if answered = json.Unmarshal(data, &a) == nil && a.ID != nil || answered; len(data) > 0 {
				b.write(data)
			}
			return nil
		})
		if err == nil && !answered {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && !answered {
			return fmt.Errorf("the answer of %s broke off (%w); send the same call with the same id again", where, err)
		}
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, cli.MaxDocument))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", where, err)
	}
	return b.told(resp.StatusCode, raw, h, where)
}

// told writes an answer that came at once. An error of HTTP gets the id of the message, which the door has not read.
func (b *bridge) told(status int, raw []byte, h rpcHead, where string) error {
	var a struct {
		ID    json.RawMessage `json:"id"`
		RPC   string          `json:"jsonrpc"`
		Error *struct {
			Code    int
			Message string
		} `json:"error"`
	}
	err := json.Unmarshal(raw, &a)
	switch {
	case status == http.StatusAccepted && len(raw) == 0:
		return nil
	case err == nil && a.RPC != "" && (h.ID == nil || a.Error == nil || string(a.ID) == string(h.ID)):
		b.write(raw)
	case err == nil && a.Error != nil:
		b.refuse(h.ID, cmp.Or(a.Error.Code, rpcNoDoor), a.Error.Message)
	default:
		return fmt.Errorf("%s answered with status %d and no JSON-RPC; is it a Tidemark server of this version?", where, status)
	}
	return nil
}

// post sends a message. When the process that had the store has ended, the store is looked for again, once.
func (b *bridge) post(ctx context.Context, line []byte, h rpcHead) (*http.Response, string, error) {
	for again := false; ; again = true {
		b.door.RLock()
		c := b.c
		b.door.RUnlock()
		req, err := c.Request(ctx, http.MethodPost, "/mcp", bytes.NewReader(line))
		if err != nil {
			return nil, c.Where, err
		}
		mcpHeaders(req.Header, h)
		resp, err := c.RT.RoundTrip(req)
		if err == nil {
			return resp, c.Where, nil
		}
		named, _ := b.m.Named() // it was read once already
		if again || named != "" || c.local != nil || ctx.Err() != nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, c.Where, fmt.Errorf("no answer from %s: %w", c.Where, err)
		}
		if err := b.anew(ctx, c); err != nil {
			return nil, c.Where, err
		}
	}
}

// anew opens the door again, unless another message has done so.
func (b *bridge) anew(ctx context.Context, gone *client) error {
	b.door.Lock()
	defer b.door.Unlock()
	if b.c != gone {
		return nil
	}
	end := b.end
	if err := b.open(context.WithoutCancel(ctx)); err != nil {
		b.c, b.end = gone, end
		return err
	}
	return end()
}

// mcpHeaders sets what a client over HTTP says beside its message.
func mcpHeaders(to http.Header, h rpcHead) {
	to.Set("Content-Type", "application/json")
	to.Set("Accept", "application/json, text/event-stream")
	if h.Params.Meta.Version == "" {
		return
	}
	to.Set("Mcp-Protocol-Version", h.Params.Meta.Version)
	to.Set("Mcp-Method", headerText(h.Method))
	if name := cmp.Or(h.Params.Name, h.Params.URI); name != "" {
		to.Set("Mcp-Name", headerText(name))
	}
}

// headerText is a text as a header may have it.
func headerText(s string) string {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.ContainsFunc(s, odd) || strings.TrimSpace(s) != s || strings.HasPrefix(s, "=?base64?") {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}
