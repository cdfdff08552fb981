package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/session"
)

// isProxied reports the key of a conversation whose client keeps the history itself, or of a track of it.
func isProxied(key string) bool {
	k, err := tidemark.ParseKey(keyOfTrack(key))
	return err == nil && session.Tracked(k)
}

// keyOfTrack is the key of the conversation that a track is of.
func keyOfTrack(key string) string {
	root, _, _ := strings.Cut(key, "#")
	return root
}

// tracksOf lists the tracks of a proxied conversation; of any other key there are none.
func tracksOf(ctx context.Context, c *client, key string) ([]session.Track, error) {
	if !isProxied(key) {
		return nil, nil
	}
	var info struct {
		Tracks []session.Track `json:"tracks"`
	}
	err := c.Get(ctx, cli.SessionPath(keyOfTrack(key), ""), &info)
	return info.Tracks, err
}

// onTrack prints as a first line which track of a proxied conversation is shown for a key, where there are several.
func onTrack(ctx context.Context, m *cli.Main, c *client, key string) {
	if list, err := tracksOf(ctx, c, key); err == nil && len(list) > 1 { // an error is told by what is shown
		m.Out.Line(tellTrack(key, list))
	}
}

// tellTrack says which of some tracks a key means.
func tellTrack(key string, list []session.Track) string {
	longest := slices.IndexFunc(list, func(t session.Track) bool { return t.Main })
	name := func(key string) string {
		_, n, _ := strings.Cut(key, "#t")
		return "track " + n
	}
	if longest >= 0 && (key == keyOfTrack(key) || strings.EqualFold(key, ownKey(list[longest]))) {
		return fmt.Sprintf("%s, the longest of %d", name(ownKey(list[longest])), len(list))
	}
	return fmt.Sprintf("%s of %d", name(strings.ToLower(key)), len(list))
}

// mostTracks bounds how many tracks are told beside another one.
const mostTracks = 20

// tellTracks says on standard error that a proxied conversation has several tracks, and how each is asked for: its own
// key means the longest.
func tellTracks(ctx context.Context, m *cli.Main, c *client, key string) {
	if m.JSON {
		return
	}
	list, err := tracksOf(ctx, c, key)
	if err != nil || len(list) < 2 {
		return // they are only told beside something else
	}
	m.Err.Line("tracks of the client's; the key without one means the longest:")
	rows := [][]string{{"TRACK", "MESSAGES", "CONTEXT", "UPDATED", "TITLE"}}
	for _, t := range list[:min(len(list), mostTracks)] {
		longest := ""
		if t.Main {
			longest = " (the longest)"
		}
		rows = append(rows, []string{"'" + cli.PlainKey(ownKey(t)) + "'", fmt.Sprint(t.Messages), cli.Count(t.Tokens), cli.When(t.Active), cli.OneLine(t.Title, 60) + longest})
	}
	cli.PrintTable(m.Err, rows)
	if more := len(list) - mostTracks; more > 0 {
		m.Err.Line("and " + cli.Plural(more, "more track"))
	}
}

// ownKey names a track and no other.
func ownKey(t session.Track) string {
	if key := string(t.Key); key != keyOfTrack(key) {
		return key
	}
	return string(t.Key) + "#t1"
}
