package episodes_test

import (
	"reflect"
	"testing"

	"github.com/tidemark-ai/tidemark/episodes"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestData: the data of an edit is what the type says, is read as it was made, and also as it was stored when each
// folded episode stood by itself; as many as a log has of them take little room.
func TestData(t *testing.T) {
	var all episodes.Numbers
	for n := range episodes.MaxEpisodes {
		all = append(all, n+1)
	}
	for _, line := range []episodes.Line{{}, {Lines: []int{3, 4, 5}}, {Folded: episodes.Numbers{1, 2, 4}}, {Folded: episodes.Numbers{1, 2, 3, 9}, Lines: []int{5, 6, 7, 8}}, {Folded: all, Lines: []int{20_001}}} {
		data := line.Data()
		want, err := json.Marshal(map[string]episodes.Line{"episodes": line})
		if err != nil || string(data) != string(want) {
			t.Errorf("the data is %.200s, want %.200s: %v", data, want, err)
		}
		if len(data) > 100 {
			t.Errorf("%d episodes take %d bytes", len(line.Folded)+len(line.Lines), len(data))
		}
		former, err := json.Marshal(map[string]any{"episodes": struct {
			Folded []int `json:"folded,omitempty"`
			Lines  []int `json:"lines,omitempty"`
		}{line.Folded, line.Lines}})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range [][]byte{data, former} {
			if got := episodes.LineOf(d); got == nil || !reflect.DeepEqual(*got, line) {
				t.Errorf("%.200s is read as %.200v", d, got)
			}
		}
	}
}
