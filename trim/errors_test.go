package trim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// brokenSink takes so many cuts and fails at the next.
type brokenSink struct {
	left, asked int
	err         error
}

func (s *brokenSink) Cut(Cut) error {
	if s.asked++; s.asked > s.left {
		return s.err
	}
	return nil
}

// brokenReads fails each reading of so many bytes at once, or from so many readings on.
type brokenReads struct {
	io.ReaderAt
	size, after int
	err         error
}

func (r *brokenReads) ReadAt(p []byte, off int64) (int, error) {
	if r.after--; len(p) == r.size || r.after == 0 {
		return 0, r.err
	}
	return r.ReaderAt.ReadAt(p, off)
}

// Whatever fails, the trim says what that was and does not go on, and nobody takes what it counted for anything.
func TestTrimFails(t *testing.T) {
	lost := errors.New("lost")
	var b strings.Builder
	for range 4000 {
		b.WriteString(user(long(100)) + "\n" + `{"type":"queue-operation"}` + "\n")
	}
	many := b.String()
	unanswered := called("t1", "B", `{}`) + "\n" + user("b") + "\n"
	relinked := named("q", "a") + "\n" + `{"type":"assistant","uuid":"g","parentUuid":"q","message":{"role":"assistant","content":[]}}` + "\n" + `{"uuid":"z","parentUuid":"g"}` + "\n"
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	sink := &brokenSink{left: 7, err: lost}
	for name, c := range map[string]struct {
		ctx  context.Context
		in   io.ReaderAt
		size int
		out  io.Writer
		cuts Sink
		want error
		said string
	}{
		"cuts":              {t.Context(), strings.NewReader(many), len(many), io.Discard, sink, lost, "trim: keep the cut at byte "},
		"the end":           {t.Context(), strings.NewReader(unanswered), len(unanswered), &broken{10, lost}, nil, lost, "trim: write the trimmed log: "},
		"the midst":         {t.Context(), strings.NewReader(many), len(many), &broken{1000, lost}, nil, lost, "trim: write the trimmed log: "},
		"a shorter log":     {t.Context(), strings.NewReader(many), len(many) + 1, io.Discard, nil, io.ErrUnexpectedEOF, "trim: read log at byte "},
		"the first reading": {t.Context(), &brokenReads{strings.NewReader(many), 0, 1, lost}, len(many), io.Discard, nil, lost, "trim: read log behind byte 0: "},
		"a name of a call":  {t.Context(), &brokenReads{strings.NewReader(unanswered), len(`"t1"`), 0, lost}, len(unanswered), io.Discard, nil, lost, "trim: read log at byte "},
		"a name of a line":  {t.Context(), &brokenReads{strings.NewReader(relinked), len(`"q"`), 0, lost}, len(relinked), io.Discard, nil, lost, "trim: read log at byte "},
		"nobody waits":      {cancelled, strings.NewReader(many), len(many), io.Discard, nil, context.Canceled, "trim: "},
	} {
		m, err := Trim(c.ctx, c.in, int64(c.size), c.out, c.cuts, Options{})
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.said) || m != (Metrics{}) {
			t.Errorf("%s: %v, %+v", name, err, m)
		}
	}
	if sink.asked != 8 {
		t.Errorf("%d cuts were told, the eighth failed", sink.asked)
	}
	for after := 2; ; after++ { // the log is read more than once
		var out bytes.Buffer
		m, err := Trim(t.Context(), &brokenReads{strings.NewReader(many), 0, after, lost}, int64(len(many)), &out, nil, Options{})
		if err == nil {
			if m.QueueOperationsRemoved != 4000 || after < 10 {
				t.Errorf("%d readings, %+v", after, m)
			}
			break
		}
		if !errors.Is(err, lost) || m != (Metrics{}) {
			t.Fatalf("reading %d: %v, %+v", after, err, m)
		}
	}
}

// What is appended to a log is none of its concern, wherever the last compaction stands.
func TestTrimGrown(t *testing.T) {
	log := user("gone") + "\n" + boundary + "\n" + user("a") + "\n"
	var out bytes.Buffer
	m, err := Trim(t.Context(), strings.NewReader(log+user("later")+"\n"), int64(len(log)), &out, nil, Options{})
	if err != nil || out.String() != boundary+"\n"+user("a")+"\n" || m.UserMessages != 1 || m.TrimmedBytes != int64(out.Len()) {
		t.Errorf("%v, %+v, %s", err, m, out.String())
	}
}

// What an untrim cannot read, or write, it says, and it writes no log that is another than the one that was trimmed.
func TestUntrimFails(t *testing.T) {
	lost := errors.New("lost")
	in := []byte(strings.Repeat("0123456789abcde\n", 1000))
	trim := func(cuts ...Cut) (out []byte, f *CutsFile) {
		var o, c bytes.Buffer
		w, err := NewCutsWriter(&c, bytes.NewReader(in), int64(len(in)), 500, cutsAt)
		at := int64(0)
		for _, one := range cuts {
			_, _ = w.Out(&o).Write(in[at:one.From])
			err = errors.Join(err, w.Cut(one))
			_, _ = w.Out(&o).Write(make([]byte, one.Put))
			at = one.To
		}
		_, _ = w.Out(&o).Write(in[at:])
		if err = errors.Join(err, w.Close(nil)); err != nil {
			t.Fatal(err)
		}
		return o.Bytes(), openCuts(t, c.Bytes())
	}
	out, f := trim(Cut{From: 100, To: 900, Put: 3, Handle: long(maxHandle)}, Cut{From: 900, To: 900, Put: 2}, Cut{From: 1000, To: 9000})
	back, u, err := untrimBytes(append(bytes.Clone(out), "more"...), f)
	if err != nil || string(back) != string(in)+"more" || u != (Untrimmed{Bytes: 16_000, Cuts: 3, Appended: 4}) {
		t.Fatalf("%v, %+v, %d bytes", err, u, len(back))
	}
	for room := 0; room < len(in)+4; room += 501 {
		_, err := Untrim(t.Context(), strings.NewReader(string(out)+"more"), int64(len(out)+4), f, &broken{room, lost})
		if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "write log: ") {
			t.Fatalf("room for %d: %v", room, err)
		}
	}
	for after := 1; ; after++ { // first the trimmed form is checked
		_, err := Untrim(t.Context(), &brokenReads{strings.NewReader(string(out) + "more"), 0, after, lost}, int64(len(out)+4), f, io.Discard)
		if err == nil && after > 4 {
			break
		}
		if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "read trimmed log: ") {
			t.Fatalf("reading %d: %v", after, err)
		}
	}
	f.foot.Sum = "0000000000000000"
	if _, _, err := untrimBytes(out, f); err == nil || !strings.Contains(err.Error(), "what it gives is not the log that was trimmed") {
		t.Errorf("another sum: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Untrim(cancelled, bytes.NewReader(out), int64(len(out)), f, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
	_, all := trim(Cut{From: 0, To: int64(len(in))})
	if _, err := Untrim(cancelled, strings.NewReader(""), 0, all, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for what was cut: %v", err)
	}
}
