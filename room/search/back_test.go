package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/room"
)

// TestCallReadsBack: a call that names an entry, a block of one, an episode or what another conversation said reads it, and is no
// search.
func TestCallReadsBack(t *testing.T) {
	c := callerOf(deskOf(t, hosttest.DB(t), "agent:main:main", silent{}))
	const walnut = "walnut planks of room 0"
	id, long := string(c.says(morning, walnut).ID), strings.Repeat("e", maxID)
	rooms := false
	c.Far = func() (room.Reader, bool) { return elsewhere{}, rooms }
	c.Episodes = func() (room.EpisodeReader, bool) { return elsewhere{}, rooms }
	for _, row := range []struct {
		input string
		rooms bool
		want  string
	}{
		{fmt.Sprintf(`{"entry":%q}`, id), false, walnut},
		{fmt.Sprintf(`{"entry":%q,"offset":7}`, id), false, "planks of room 0"},
		{fmt.Sprintf(`{"query":"x","entry":%q,"k":1}`, id), true, walnut},
		{fmt.Sprintf(`{"entry":"%s#0","offset":7}`, id), false, "planks of room 0"},
		{fmt.Sprintf(`{"entry":"%s#5"}`, id), false, "refused: "},
		{`{"episode":"build","offset":3}`, true, "build of " + c.log + " from 3"},
		{`{"episode":"build"}`, false, `refused: episode "build": not found`},
		{fmt.Sprintf(`{"entry":%q,"episode":"p"}`, id), true, walnut},
		{`{"entry":"agent:main:a/r1","offset":7}`, true, "agent:main:a/r1 from 7"},
		{`{"entry":"agent:main:a/r1"}`, false, "refused: "},
		{fmt.Sprintf(`{"entry":%q}`, long), false, "refused: entry " + long},
		{fmt.Sprintf(`{"entry":"%se"}`, long), false, "refused: entry \"" + long[:40] + "\"…: an id has at most 100 bytes"},
	} {
		rooms, c.searches = row.rooms, nil
		got := c.call(row.input)
		if !strings.HasPrefix(got, row.want) || !strings.HasPrefix(row.want, "refused") && got != row.want || !slices.Equal(c.searches, []bool{false}) {
			t.Errorf("%s: %q, want %q, searches %v", row.input, got, row.want, c.searches)
		}
	}
	c.call(`{"query":"x"}`)
	if !slices.Equal(c.searches[1:], []bool{true}) {
		t.Errorf("a search asks as %v", c.searches)
	}
}

// elsewhere is a room that reads episodes, and what a conversation that was delegated to said.
type elsewhere struct{ room.EpisodeReader }

func (elsewhere) Read(_ context.Context, name string, offset int) (string, error) {
	return fmt.Sprintf("%s from %d", name, offset), nil
}

func (elsewhere) ReadEpisode(_ context.Context, log, name string, offset int) (string, error) {
	return fmt.Sprintf("%s of %s from %d", name, log, offset), nil
}
