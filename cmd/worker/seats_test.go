package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
)

// TestSeats: an object holds so many branches in memory and no more, and forgets none that is in work.
func TestSeats(t *testing.T) {
	cfg := &config.Config{}
	busy, ended := map[tidemark.Key]bool{}, map[tidemark.Key]int{}
	var s seats
	open := func(n int) error {
		key := tidemark.Key(fmt.Sprint("main#b", n))
		if s.get(key, cfg) != nil {
			return nil
		}
		if err := s.room(); err != nil {
			return err
		}
		s.put(key, &seat{cfg: cfg, idle: func() bool { return !busy[key] }, end: func() { ended[key]++ }})
		return nil
	}
	for n := range maxSeats {
		if err := open(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(0); err != nil || len(ended) != 0 { // used again
		t.Fatalf("%v, ended %v", err, ended)
	}
	busy["main#b1"] = true
	if err := open(maxSeats); err != nil || len(s.live) != maxSeats || len(ended) != 1 || ended["main#b2"] != 1 {
		t.Errorf("%v, %d in memory, ended %v; want the quiet one that was used least lately", err, len(s.live), ended)
	}
	for key := range s.live {
		busy[key] = true
	}
	if err := open(1000); !errors.Is(err, tidemark.ErrBusy) || len(s.live) != maxSeats {
		t.Errorf("%v, %d in memory, though all are in work", err, len(s.live))
	}
	if err := open(1); err != nil {
		t.Errorf("one that is in memory: %v", err)
	}
}

// TestSeatsOfOldSettings: new settings end a session in memory as soon as it is quiet.
func TestSeatsOfOldSettings(t *testing.T) {
	old, busy, ended := &config.Config{}, true, 0
	var s seats
	st := &seat{cfg: old, idle: func() bool { return !busy }, end: func() { ended++ }}
	s.put("main", st)
	changed := &config.Config{}
	if s.get("main", old) != st || s.get("main", changed) != st || ended != 0 {
		t.Error("a session in work was forgotten")
	}
	busy = false
	if s.get("main", old) != st || s.get("main", changed) != nil || ended != 1 || len(s.live) != 0 {
		t.Errorf("ended %d times, %d in memory", ended, len(s.live))
	}
}
