package main

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestPairingList: codes stand as they were told, and a fourth stranger's silence is explained.
func TestPairingList(t *testing.T) {
	var list channel.Listing
	for n := range channel.MostPending {
		var b strings.Builder
		showPairing(&cli.Output{W: &b}, list)
		if strings.Contains(b.String(), "wait on") {
			t.Errorf("with %d: %q", n, b.String())
		}
		list.Pending = append(list.Pending, channel.Pending{Channel: "whatsapp", Name: "1", Code: "ABCDEFGH"})
	}
	var b strings.Builder
	showPairing(&cli.Output{W: &b}, list)
	if out := b.String(); !strings.Contains(out, "code ABCD-EFGH until") || strings.Contains(out, "ABCDEFGH") || !strings.Contains(out, "3 of 3 wait on whatsapp") {
		t.Errorf("%q", out)
	}
}

// TestNamesOf: people are listed by names that lead to them, with the one that their conversation has.
func TestNamesOf(t *testing.T) {
	for _, row := range []struct {
		k    channel.Known
		want string
	}{
		{channel.Known{Name: "1111", Names: []string{"1111"}}, "1111"},
		{channel.Known{Name: "1111", Names: []string{"1111", "US.a"}}, "1111, US.a"},
		{channel.Known{Name: "1111", Names: []string{"2222", "US.a"}}, "2222, US.a (was 1111)"},
		{channel.Known{Name: "1111"}, "1111"},
	} {
		if got := namesOf(row.k); got != row.want {
			t.Errorf("%+v is %q, want %q", row.k, got, row.want)
		}
	}
}
