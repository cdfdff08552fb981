package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-ai/tidemark"
)

// proxyChannel is that of conversations whose clients keep the history themselves; their keys have it.
const proxyChannel = "proxy"

// isProxied reports the key of a conversation whose client keeps the history itself, or of a track of it.
func isProxied(key string) bool {
	k, err := tidemark.ParseKey(keyOfTrack(key))
	return err == nil && k.Channel() == proxyChannel
}

// keyOfTrack is the key of the conversation that a track is of.
func keyOfTrack(key string) string {
	root, _, _ := strings.Cut(key, "#")
	return root
}

// trackKey is the key of track n of a conversation, from 1.
func trackKey(key string, n int) string {
	if n == 1 {
		return key
	}
	return fmt.Sprintf("%s#t%d", key, n)
}

// mostTracks bounds how many tracks are told beside another one.
const mostTracks = 20

// tellTracks says on standard error that a proxied conversation has more than one track, and how they are asked for: a
// client's first request is often a small question beside its work.
func (m *Main) tellTracks(ctx context.Context, c *client, key string) {
	if m.json || !isProxied(key) {
		return
	}
	rows := [][]string{{"TRACK", "MESSAGES", "TITLE"}}
	root, more := keyOfTrack(key), false
	for n := 1; ; n++ {
		var info tidemark.SessionInfo
		if err := c.get(ctx, sessionPath(trackKey(root, n), ""), &info); err != nil {
			break // there are no more, or they cannot be told
		}
		if more = n > mostTracks; more {
			break
		}
		rows = append(rows, []string{"'" + trackKey(plainKey(root), n) + "'", fmt.Sprint(info.Messages), oneLine(info.Title, 60)})
	}
	const head, one = 1, 1
	if len(rows) <= head+one {
		return
	}
	m.err.line("this is one of several tracks of the client's:")
	table(m.err, rows)
	if more {
		m.err.line("and more")
	}
}
