package toolbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
)

// Bounds of calls that are made again: of tools that may be called again only, after failures on the way only.
const (
	maxTries  = 3
	firstWait = 250 * time.Millisecond // doubled with each
)

// Call implements [tidemark.Toolbox].
func (b *Box) Call(ctx context.Context, scope tidemark.Scope, call tidemark.Block) tidemark.Block {
	if b.none(scope) {
		return failed(call, fmt.Sprintf("there is no tool %q", cut(call.Name, maxName)))
	}
	if call.Name == helpName {
		b.known(ctx, "")
		return b.help(scope, call)
	}
	e, ok := b.find(ctx, scope, call.Name)
	if !ok {
		return failed(call, b.gone(scope, call.Name))
	}
	if b.changed(scope.Key, e) {
		return failed(call, "not run: "+call.Name+" was changed by its server since it was offered. It is now "+string(encode(e.definition(false)))+" - if it is still what you want, call it again by that.")
	}
	s := e.from
	limited, stop := b.Runtime.WithTimeout(ctx, s.Timeout)
	defer stop()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-limited.Done():
		return failed(call, fmt.Sprintf("not run: %d calls of %s are in work (%s), and none ended within %s", s.Parallel, label(s), s.setting("parallel"), s.Timeout))
	}
	own := tidemark.ToolUse(call.ID, e.Name, call.Input)
	out, err := b.try(limited, e, own)
	if err != nil {
		return b.explain(ctx, scope, call, e, err)
	}
	return b.result(scope, call, e, out)
}

// try makes a call, and again where that is safe and may help.
func (b *Box) try(ctx context.Context, e entry, call tidemark.Block) (tidemark.Block, error) {
	wait := firstWait
	for n := 1; ; n++ {
		out, err := e.from.Source.Call(ctx, call)
		if err == nil || !e.Idempotent || n >= maxTries || !errors.Is(err, tidemark.ErrUnavailable) || ctx.Err() != nil {
			return out, err
		}
		if b.Runtime.Sleep(ctx, wait) != nil {
			return out, err
		}
		wait *= 2
	}
}

// known has those sources listed that a name may be of, and that never were or say that they have changed: a
// conversation may go on whose tools were offered in another life of this process. An empty name may be of any. What is
// too old is asked for by [Box.Tools].
func (b *Box) known(ctx context.Context, name string) {
	b.refresh(ctx, func(s *source) bool {
		return (name == "" || s.Name == "" || strings.HasPrefix(name, s.Name+between)) && s.unknown()
	})
}

// find is a tool that the scope may use.
func (b *Box) find(ctx context.Context, scope tidemark.Scope, name string) (entry, bool) {
	b.known(ctx, name)
	for _, e := range b.mayUse(scope) {
		if e.public == name {
			return e, true
		}
	}
	return entry{}, false
}

// gone says why there is no such tool for a scope.
func (b *Box) gone(scope tidemark.Scope, name string) string {
	short := cut(name, maxName)
	if !b.allowed(scope, name) {
		return fmt.Sprintf("not run: %q may not be used here", short)
	}
	for _, s := range b.sources {
		if s.Name == "" || !strings.HasPrefix(name, s.Name+between) {
			continue
		}
		s.outdated()
		tools, err := s.known()
		switch {
		case s.Source == nil:
			return "not run: " + label(s) + " cannot be used here: " + s.Gap
		case len(tools) == 0 && err != nil:
			return "not run: the tools of " + label(s) + " are not known: " + saidBy(err)
		case b.wasTold(scope.Key, name):
			return fmt.Sprintf("not run: %s no longer has %q; its list is read again", label(s), short)
		}
	}
	return fmt.Sprintf("there is no tool %q", short)
}

// maxSaid bounds what a source says of a failure, in bytes.
const maxSaid = 2 << 10

// saidBy is what a source says of a failure, without the word by which programs tell its kind.
func saidBy(err error) string {
	text := err.Error()
	if kind := tidemark.Sentinel(err); kind != nil {
		text = strings.TrimSuffix(text, ": "+kind.Error())
	}
	return Harmless(cut(text, maxSaid))
}

// explain is a result that says why a call failed.
func (b *Box) explain(ctx context.Context, scope tidemark.Scope, call tidemark.Block, e entry, err error) tidemark.Block {
	s := e.from
	said := saidBy(err)
	b.Logger.Debug("tool failed", "source", s.Name, "tool", e.Name, "err", tidemark.Sentinel(err))
	switch {
	case ctx.Err() != nil:
		return failed(call, "interrupted, may have run: "+context.Cause(ctx).Error())
	case errors.Is(err, tidemark.ErrNotFound):
		s.outdated()
		return failed(call, fmt.Sprintf("not run: %s no longer has %q; its list is read again (%s)", label(s), cut(call.Name, maxName), said))
	case errors.Is(err, tidemark.ErrInvalid):
		s.outdated()
		return failed(call, label(s)+" refused the arguments: "+said+b.schema(scope, e))
	case errors.Is(err, tidemark.ErrBusy):
		return failed(call, "not run: "+label(s)+" is not ready: "+said)
	case errors.Is(err, tidemark.ErrTooLarge):
		return failed(call, fmt.Sprintf("the answer of %s is larger than %s allows (%d bytes): ask for less (%s)", label(s), s.setting("maxBytes"), s.MaxBytes, said))
	case errors.Is(err, tidemark.ErrTimeout):
		return failed(call, fmt.Sprintf("%s did not answer within %s (%s); the call may have run", label(s), s.Timeout, s.setting("timeoutMs")))
	}
	return failed(call, label(s)+" failed, and the call may have run: "+said)
}

// schema is the whole definition for a model that has only seen the stub, else empty.
func (b *Box) schema(scope tidemark.Scope, e entry) string {
	if !b.stubbed(b.mayUse(scope)) {
		return ""
	}
	return "\n\nIts whole definition: " + string(encode(e.definition(false)))
}

// setting is the key of the configuration by which a source is set up.
func (s *source) setting(name string) string {
	if s.Name == "" {
		return "the module's " + name
	}
	return "tools.mcp." + s.Name + "." + name
}

func label(s *source) string {
	if s.Name == "" {
		return "the module"
	}
	return "server " + s.Name
}

// result is what came, in bounds, as an answer to the call.
func (b *Box) result(scope tidemark.Scope, call tidemark.Block, e entry, out tidemark.Block) tidemark.Block {
	s := e.from
	blocks, left := make([]tidemark.Block, 0, len(out.Content)), s.MaxBytes
	for _, c := range out.Content {
		if c.Type == tidemark.TypeText {
			c = tidemark.Text(Harmless(s.hide(c.Text)))
		}
		size := len(c.Text)
		if c.Type != tidemark.TypeText {
			size = len(c.AppendJSON(nil))
		}
		if size <= left {
			blocks, left = append(blocks, c), left-size
			continue
		}
		note := fmt.Sprintf("[cut here: the result is larger than %s allows, %d bytes]", s.setting("maxBytes"), s.MaxBytes)
		if c.Type == tidemark.TypeText && left > 0 {
			note = cut(c.Text, left) + "\n" + note
		}
		blocks = append(blocks, tidemark.Text(note))
		break
	}
	if out.IsError && refusesArguments(blocks) {
		s.outdated()
		if more := b.schema(scope, e); more != "" {
			blocks = append(blocks, tidemark.Text(strings.TrimSpace(more)))
		}
	}
	switch {
	case len(blocks) == 0:
		return tidemark.ToolResult(call.ID, "(nothing)", out.IsError)
	case len(blocks) == 1 && blocks[0].Type == tidemark.TypeText:
		return tidemark.ToolResult(call.ID, blocks[0].Text, out.IsError)
	}
	return tidemark.Block{Type: tidemark.TypeToolResult, ToolUseID: call.ID, Content: blocks, IsError: out.IsError}
}

// refusesArguments reports an error by which servers say in a result that the arguments do not fit, or that there is
// no such tool: some send that instead of an error of the protocol.
func refusesArguments(blocks []tidemark.Block) bool {
	const first = 512
	for _, c := range blocks {
		t := strings.ToLower(c.Text[:min(len(c.Text), first)])
		for _, sign := range []string{"-32602", "invalid param", "invalid argument", "validation error", "required propert"} {
			if strings.Contains(t, sign) {
				return true
			}
		}
	}
	return false
}
