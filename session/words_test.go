package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/room/search"
)

// TestWordsFound: what is written in one form is found in another, through the index of the database: its
// tokenizer must leave the terms as they are made.
func TestWordsFound(t *testing.T) {
	h := newHarness(t, small)
	rows := []struct{ text, query string }{
		{"We met at the cafe\u0301 Beispiel.", "caf\u00e9"},
		{"Der Schl\u00fcssel liegt unter der Matte.", "Schlu\u0308ssel"},
		{"The fee is １２３４５ crowns.", "12345"},
		{"A postcard from İzmir came.", "izmir"},
		{"Write to ann.bee@example.com about it.", "ann.bee@example.com"},
		{"Bob has the address bob@mail.example.org there.", "mail.example.org"},
		{"See https://docs.example.net/guide?page=77 for that.", "docs.example.net/guide"},
		{"It broke with v7.8.9 of it.", "7.8.9"},
		{"The good one was 0f1e2d3c4b5a69788796a5b4c3d2e1f0.", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"},
		{`The log lies in D:\Logs\Winter\snow.txt on his machine.`, "snow.txt"},
		{"お茶を飲みました。", "茶"},
		{"昨日は緑酒", "酒"},
		{"ฉันชอบแมวมาก", "แมว"},
		{"Her old engine is written in C++ mostly.", "C++"},
		{"His new tool is in C# instead.", "csharp"},
		{"They moved to .NET last spring.", "dotnet"},
		{"A blob " + strings.Repeat("q7", 90) + " was there.", strings.Repeat("q7", 90)},
		{"The party is in room v2 upstairs.", "V2"},
	}
	for _, r := range rows {
		h.say(r.text)
	}
	for i, r := range rows {
		t.Run(fmt.Sprintf("%d %.20s", i, r.query), func(t *testing.T) {
			found, err := h.Search(t.Context(), r.query, 3)
			if err != nil || len(found) == 0 || found[0].Text != r.text {
				t.Errorf("search: %.200v, %v", found, err)
			}
			again, err := h.Recall(t.Context(), search.Wanted{Query: r.query, K: 3})
			if err != nil || len(again.Results) == 0 || again.Results[0].Text != r.text {
				t.Errorf("recall: %s %+v, %v", again.Verdict, again.Results, err)
			}
		})
	}
}
