package compaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// countedWords are the words of a text with what they count.
func countedWords(count func(c *topicCount)) string {
	c := newTopicCount()
	c.at = 1
	count(c)
	return strings.Trim(fmt.Sprint(c.strongest()), "[]")
}

// TestTopicsOfText is the table of which words of a text count: whole ones in the first 200 bytes, that are long enough to tell
// something, parts of long paths, and pieces of scripts that know no spaces.
func TestTopicsOfText(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", ""},
		{"tide tides", "{tides 1}"}, // five letters
		{"12345 1234a 1e345", "{1234a 1} {1e345 1}"},
		{"Lighthouse LIGHTHOUSE", "{lighthouse 1}"}, // once for a message
		{"_harbour_ -quay_side- ./docks/east/", "{docks/east 1} {harbour 1} {quay_side 1}"},
		{"north+harbour=south++", "{harbour 1} {north 1} {south 1}"},
		{"a/b/c/harbour/of/the/north/sea", "{harbour/of/the/north/sea 1}"},
		{"aaa/harbour/of/the/north/seas", "{of/the/north/seas 1}"}, // 25 letters are too many
		{"abcdefghijklmnopqrstuvwx", "{abcdefghijklmnopqrstuvwx 1}"},
		{"abcdefghijklmnopqrstuvwxy", ""},
		{"please really harbour", "{harbour 1}"}, // what is in every text
		{"ééééé éééé", "{ééééé 1}"},              // letters, not bytes
		{"٣٤٥٦٧ harbour", "{harbour 1}"},         // digits of another script
		{"항구 항", "{항구 1}"},                       // two syllables
		{"港口", "{港口 1}"},
		{"港", ""},
		{"港口潮汐", "{港口潮汐 1}"},
		{"港口潮汐表", "{口潮 1} {汐表 1} {港口 1} {潮汐 1}"}, // five go by pairs
		{"港口的潮汐", "{港口 1} {潮汐 1}"},
		{"データベース", "{データベース 1}"},
		{"データベースデー", "{データベースデー 1}"}, // eight
		{"データベースデータ", "{スデ 1} {タベ 1} {デー 1} {ベー 1} {ース 1}"},
		{"するデータ", "{データ 1}"},
		{"港口harbour", "{harbour 1} {港口 1}"},
		{"harbour,quays;docks!", "{docks 1} {harbour 1} {quays 1}"},
		{"[Trimmed: ~9 chars; harbour]", ""},
		{strings.Repeat(". ", 96) + " harbour", "{harbour 1}"}, // ends where it is cut
		{strings.Repeat(". ", 96) + " harbours", ""},
		{strings.Repeat(". ", 96) + " harbour.", ""},
		{strings.Repeat(". ", 96) + "harbour quay", "{harbour 1}"},
		{strings.Repeat(". ", 97) + "harbou", "{harbou 1}"},
		{strings.Repeat("a", 24) + "\u00a0harbour", "{" + strings.Repeat("a", 24) + " 1} {harbour 1}"},
	} {
		if got := countedWords(func(c *topicCount) { c.text(row.text, 1) }); got != row.want {
			t.Errorf("%q: %s, want %s", row.text, got, row.want)
		}
	}
}

// TestTopicsOfInput: of a call the strings of its input count, not the names of its fields, nor what is cut off.
func TestTopicsOfInput(t *testing.T) {
	for _, row := range []struct{ input, want string }{
		{`{"harbour":"lighthouse"}`, "{lighthouse 2}"},
		{`{"harbour" : "lighthouse" }`, "{lighthouse 2}"},
		{"{\"harbour\"\n\t:\"lighthouse\"\n}", "{lighthouse 2}"},
		{`["lighthouse","quays"]`, "{lighthouse 2} {quays 2}"},
		{`{"a":"docks\nquays\tnorth\r\"south\"\\east5"}`, "{docks 2} {east5 2} {north 2} {quays 2} {south 2}"},
		{`{"a":"lighthouse`, ""},  // it has no end
		{`{"a":"lighthouse"`, ""}, // nothing behind it tells whether it is a name
		{`{"a":12345,"b":true}`, ""},
		{`{"a":"` + strings.Repeat(".", 180) + ` harbour"}`, "{harbour 2}"},
		{`{"a":"` + strings.Repeat(".", 190) + ` harbour"}`, ""}, // only the beginning is looked at
	} {
		if got := countedWords(func(c *topicCount) { c.values([]byte(row.input)) }); got != row.want {
			t.Errorf("%s: %s, want %s", row.input, got, row.want)
		}
	}
}

// TestTopicsByMessage: who said a word decides how much it counts; of a result the first text counts, and pointers say nothing of
// their own.
func TestTopicsByMessage(t *testing.T) {
	pointed := Item{Stubs: 1, Message: of(tidemark.Assistant, tidemark.ToolUse("c", "read", []byte(`{"evicted":"99 tokens","path":"harbour.go","recall":{"entry":"lighthouse"}}`)))}
	result := Item{Stubs: 1, Message: of(tidemark.User, tidemark.ToolResult("c", "[Evicted: result of lighthouse", false))}
	several := Item{Message: of(tidemark.User, tidemark.Block{Type: tidemark.TypeToolResult, Content: []tidemark.Block{tidemark.Text("harbour"), tidemark.Text("lighthouse")}}, tidemark.Block{Type: tidemark.TypeToolResult})}
	for _, row := range []struct {
		name  string
		items []Item
		want  string
	}{
		{"a person", []Item{{Message: tidemark.NewText(tidemark.User, "harbour")}}, "{harbour 3}"},
		{"the model", []Item{{Message: tidemark.NewText(tidemark.Assistant, "harbour")}}, "{harbour 2}"},
		{"a call", []Item{{Message: of(tidemark.Assistant, tidemark.ToolUse("c", "lighthouse", []byte(`{"path":"harbour"}`)))}}, "{harbour 2}"},
		{"a result", []Item{several}, "{harbour 1}"},
		{"the pointer of a call", []Item{pointed}, "{harbour.go 2}"},
		{"of a result", []Item{result}, ""},
		{"what a tool prints like one", []Item{{Message: result.Message}}, "{evicted 1} {lighthouse 1} {result 1}"},
		{"twice in one message", []Item{{Message: of(tidemark.User, tidemark.Text("harbour harbour"), tidemark.Text("harbour"))}}, "{harbour 3}"},
		{"in three", []Item{{Message: tidemark.NewText(tidemark.User, "harbour quays")}, {Message: tidemark.NewText(tidemark.Assistant, "harbour")}, several}, "{harbour 6} {quays 3}"},
		{"the five strongest", []Item{{Message: tidemark.NewText(tidemark.Assistant, "words7 words3 words6 words1 words5 words2 words4")}, {Message: tidemark.NewText(tidemark.Assistant, "words7 words6")}},
			"{words6 4} {words7 4} {words1 2} {words2 2} {words3 2}"},
	} {
		got := countedWords(func(c *topicCount) {
			for i := range row.items {
				c.message(&row.items[i])
			}
		})
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
	c := newTopicCount()
	c.topics([]Topic{{"harbour", 5}, {"quays", 1}})
	c.topics([]Topic{{"harbour", 2}})
	if c.message(&Item{Message: tidemark.NewText(tidemark.User, "harbour")}); fmt.Sprint(c.strongest()) != "[{harbour 10} {quays 1}]" {
		t.Errorf("with those of markers: %v", c.strongest())
	}
}

// TestSecretive is the table of runs that look random, of the length from which on that is looked at.
func TestSecretive(t *testing.T) {
	for w, want := range map[string]bool{
		"":                                             false,
		"a1b2c3d4e5f6a7b":                              false, // 15
		"a1b2c3d4e5f6a7b8":                             true,  // 16 change places all the time
		"a1b2c3d4e5f6a7b8.go":                          true,
		"x.a1b2c3d4e5f6a7b8":                           true,
		"x.a1b2c3d4e5f6a7b.c":                          false,
		"internationalization":                         false,
		"InternationalizationBase":                     false, // a capital before small letters is no change
		"XMLHttpRequestWithTimeout":                    false,
		"aaaa1111aaaa1111":                             false, // three changes of 16 letters
		"aaa111aaa111aaa1":                             true,  // five
		"aaaa1111aaaa1111a":                            false, // four of 17
		"aaa111aaaa1111aa":                             false, // four of 16 are a quarter, no more
		"ab12/cd34/ef56/gh78/ij90":                     false, // 24 with their slashes
		"a1b2/c3d4/e5f6/g7h8/i9j01":                    true,  // 25
		"abcd/efgh/ijkl/mnop/qrst1":                    false,
		"ab1c/efgh/ijk1/mnop/qr1st":                    false, // five of 21
		"ab1c/efgh/i1kl/mnop/qr1st":                    true,  // six
		"harbour-of-the-north-sea-and-its-lighthouses": false,
		"éééééééééééé":                                 false,
		"a1b2c3d4é5f6a7b8":                             false, // what is no ASCII parts it
	} {
		if got := secretive(w); got != want {
			t.Errorf("%q looks random: %v", w, got)
		}
	}
	for b := range 256 {
		want := byte(0)
		switch c := byte(b); {
		case strings.IndexByte("abcdefghijklmnopqrstuvwxyz", c) >= 0:
			want = 'a'
		case strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZ", c) >= 0:
			want = 'A'
		case strings.IndexByte("0123456789", c) >= 0:
			want = '0'
		}
		if got := classOf(byte(b)); got != want {
			t.Errorf("%q is of class %q, want %q", byte(b), got, want)
		}
		if got, in := wordByte(byte(b)), want != 0 || strings.IndexByte("_-./+=", byte(b)) >= 0; got != in {
			t.Errorf("%q is of words: %v", byte(b), got)
		}
	}
}
