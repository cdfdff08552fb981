package tidemarktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

func TestBlobs(t *testing.T) {
	tidemarktest.TestBlobs(t, func(*testing.T) tidemark.Blobs { return tidemarktest.NewBlobs() })
}

func TestBlobsFail(t *testing.T) {
	down := errors.New("bucket down")
	b := tidemarktest.NewBlobs()
	b.Fail = func(op, key string) error {
		if key == "bad" {
			return down
		}
		return nil
	}
	b.FailAfter = func(op, key string) error {
		if key == "lost" {
			return down
		}
		return nil
	}
	put := func(key string) error {
		_, err := b.Put(t.Context(), key, strings.NewReader("x"), 1, tidemark.PutOptions{})
		return err
	}
	_, _, getErr := b.Get(t.Context(), "bad")
	_, _, listErr := b.List(t.Context(), "bad", "", 1)
	for name, err := range map[string]error{
		"put": put("bad"), "get": getErr, "list": listErr, "delete": b.Delete(t.Context(), "bad"), "lost answer": put("lost"),
	} {
		if !errors.Is(err, down) {
			t.Errorf("%s: %v, want the error of the hook", name, err)
		}
	}
	if err := put("good"); err != nil {
		t.Error(err)
	}
	if keys := strings.Join(b.Keys(), " "); keys != "good lost" {
		t.Errorf("keys are %q; a lost answer is one to a put that was done", keys)
	}
}

func TestRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tidemarktest.NewRuntime(t)
		start := r.Now()
		if err := r.Sleep(t.Context(), time.Hour); err != nil || r.Now().Sub(start) != time.Hour {
			t.Errorf("slept %v, %v", r.Now().Sub(start), err)
		}
		ctx, cancel := r.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Sleep(ctx, time.Hour); !errors.Is(err, tidemark.ErrTimeout) {
			t.Errorf("slept past the deadline: %v", err)
		}
		r.Go(func() { _ = r.Sleep(t.Context(), time.Minute) })
		r.Go(func() {})
		synctest.Wait()
		if r.Running() != 1 || r.Started() != 2 {
			t.Errorf("%d running of %d started, want 1 of 2", r.Running(), r.Started())
		}
		if err := r.Wait(ctx); !errors.Is(err, tidemark.ErrTimeout) {
			t.Errorf("wait with an ended context: %v", err)
		}
		if err := r.Wait(context.Background()); err != nil || r.Running() != 0 {
			t.Errorf("wait: %v, %d running", err, r.Running())
		}
	})
}

// complaints is a test that notes its failure instead of failing.
type complaints struct {
	testing.TB
	said []string
}

func (c *complaints) Errorf(format string, _ ...any) { c.said = append(c.said, format) }

func TestRuntimePanic(t *testing.T) {
	c := &complaints{TB: t}
	r := tidemarktest.NewRuntime(c)
	r.Go(func() { panic("boom") })
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.said) != 1 || !strings.Contains(c.said[0], "panic") {
		t.Errorf("said %q, want one complaint about the panic", c.said)
	}
}
