package tidemark_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// user and reply wrap blocks, given as JSON, in a message.
func user(blocks string) string  { return `{"role":"user","content":` + blocks + `}` }
func reply(blocks string) string { return `{"role":"assistant","content":` + blocks + `}` }

// TestChainSame: what clients change between requests is not part of a message's identity.
func TestChainSame(t *testing.T) {
	for _, tc := range []struct{ name, a, b string }{
		{"string and one block", user(`"hi"`), user(`[{"type":"text","text":"hi"}]`)},
		{"cache marker", user(`[{"type":"text","text":"hi"}]`), user(`[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]`)},
		{"cache marker of a result", user(`[{"type":"tool_result","tool_use_id":"c","content":"x"}]`), user(`[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x","cache_control":{}}],"cache_control":{}}]`)},
		{"cache marker of an image", user(`[{"type":"image","source":{"type":"url","url":"u"}}]`), user(`[{"cache_control":{},"type":"image","source":{"url":"u","type":"url"}}]`)},
		{"cache marker of an unknown type", user(`[{"type":"odd","a":1}]`), user(`[{"type":"odd","a":1,"cache_control":{}}]`)},
		{"thinking", reply(`[{"type":"text","text":"a"}]`), reply(`[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]`)},
		{"redacted thinking", reply(`[{"type":"text","text":"a"}]`), reply(`[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]`)},
		{"signature", reply(`[{"type":"thinking","thinking":"hm","signature":"s"}]`), reply(`[{"type":"thinking","thinking":"hm","signature":"t"}]`)},
		{"reminder in the text", user(`"hi"`), user(`"hi\n<system-reminder>\nit is late\n</system-reminder>"`)},
		{"reminder behind a line break", user(`"hi\n"`), user(`"hi\n\n<system-reminder>x</system-reminder>\n"`)},
		{"reminder as a block", user(`[{"type":"text","text":"hi"}]`), user(`[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"hi"}]`)},
		{"reminder in a result", user(`[{"type":"tool_result","tool_use_id":"c","content":"x"}]`), user(`[{"type":"tool_result","tool_use_id":"c","content":"x<system-reminder>y</system-reminder>"}]`)},
		{"empty text", user(`[{"type":"text","text":"hi"}]`), user(`[{"type":"text","text":"hi"},{"type":"text","text":""}]`)},
		{"key order of an input", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":1,"b":{"c":2,"d":3}}}]`), reply(`[{"name":"n","id":"c","type":"tool_use","input":{"b":{"d":3,"c":2},"a":1}}]`)},
		{"spaces in an input", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":1}}]`), reply(`[{"type":"tool_use","id":"c","name":"n","input":{ "a" : 1 }}]`)},
		{"escapes", user(`"a/A"`), user(`"\u0061\/A"`)},
		{"extra fields of a text", user(`[{"type":"text","text":"hi"}]`), user(`[{"type":"text","text":"hi","citations":null}]`)},
		{"result said not to be an error", user(`[{"type":"tool_result","tool_use_id":"c","content":"x"}]`), user(`[{"type":"tool_result","tool_use_id":"c","content":"x","is_error":false}]`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tidemark.Chain("", decode(t, tc.a)) != tidemark.Chain("", decode(t, tc.b)) {
				t.Errorf("%s\n%s\nhave different chains", tc.a, tc.b)
			}
		})
	}
}

// TestChainDiffers: what makes another message of it.
func TestChainDiffers(t *testing.T) {
	for _, tc := range []struct{ name, a, b string }{
		{"role", user(`"hi"`), reply(`"hi"`)},
		{"text", user(`"hi"`), user(`"ho"`)},
		{"space within a text", user(`"a b"`), user(`"a  b"`)},
		{"order of blocks", user(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`), user(`[{"type":"text","text":"b"},{"type":"text","text":"a"}]`)},
		{"split of a text", user(`[{"type":"text","text":"ab"}]`), user(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)},
		{"another split", user(`[{"type":"text","text":"a"},{"type":"text","text":"bc"}]`), user(`[{"type":"text","text":"ab"},{"type":"text","text":"c"}]`)},
		{"call id", reply(`[{"type":"tool_use","id":"c","name":"n","input":{}}]`), reply(`[{"type":"tool_use","id":"d","name":"n","input":{}}]`)},
		{"call name", reply(`[{"type":"tool_use","id":"c","name":"n","input":{}}]`), reply(`[{"type":"tool_use","id":"c","name":"m","input":{}}]`)},
		{"input value", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":1}}]`), reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":2}}]`)},
		{"input number form", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":1}}]`), reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":1.0}}]`)},
		{"big numbers", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":12345678901234567890}}]`), reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":12345678901234567891}}]`)},
		{"argument named cache_control", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"cache_control":"no-store"}}]`), reply(`[{"type":"tool_use","id":"c","name":"n","input":{"cache_control":"public"}}]`)},
		{"order in an input's list", reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":[1,2]}}]`), reply(`[{"type":"tool_use","id":"c","name":"n","input":{"a":[2,1]}}]`)},
		{"result content", user(`[{"type":"tool_result","tool_use_id":"c","content":"x"}]`), user(`[{"type":"tool_result","tool_use_id":"c","content":"y"}]`)},
		{"result id", user(`[{"type":"tool_result","tool_use_id":"c","content":"x"}]`), user(`[{"type":"tool_result","tool_use_id":"d","content":"x"}]`)},
		{"image in a result", user(`[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]`), user(`[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url","url":"v"}}]}]`)},
		{"unknown type", user(`[{"type":"odd","a":1}]`), user(`[{"type":"even","a":1}]`)},
		{"unknown field of an unknown type", user(`[{"type":"odd","a":1}]`), user(`[{"type":"odd","a":2}]`)},
		{"a type named like a field of ours", user(`[{"type":"text","text":"{\"type\":\"prev\"}"}]`), user(`[{"type":"prev"}]`)},
		{"reminder that is not closed", user(`"hi"`), user(`"hi <system-reminder>x"`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tidemark.Chain("", decode(t, tc.a)) == tidemark.Chain("", decode(t, tc.b)) {
				t.Errorf("%s\n%s\nhave the same chain", tc.a, tc.b)
			}
		})
	}
}

// TestChainPrefix: two histories share their chain exactly as far as they share their messages.
func TestChainPrefix(t *testing.T) {
	link := func(texts string) []tidemark.Hash {
		var out []tidemark.Hash
		prev := tidemark.Hash("")
		for i, s := range strings.Split(texts, " ") {
			role := []tidemark.Role{tidemark.User, tidemark.Assistant}[i%2]
			prev = tidemark.Chain(prev, tidemark.NewText(role, s))
			out = append(out, prev)
		}
		return out
	}
	shared := func(a, b []tidemark.Hash) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	base := link("a b c d e")
	for _, tc := range []struct {
		name, texts string
		want        int
	}{
		{"the same", "a b c d e", 5}, {"longer", "a b c d e f g", 5}, {"shorter", "a b c", 3},
		{"edited in the middle", "a b x d e", 2}, {"edited first", "x b c d e", 0}, {"edited last", "a b c d x", 4}, {"shifted", "b c d e", 0},
	} {
		other := link(tc.texts)
		if got := shared(base, other); got != tc.want {
			t.Errorf("%s: %d links shared, want %d", tc.name, got, tc.want)
		}
		for i := tc.want; i < min(len(base), len(other)); i++ {
			if base[i] == other[i] {
				t.Errorf("%s: link %d is the same again after a difference", tc.name, i)
			}
		}
	}
	if h := base[0]; len(h) != 64 || strings.Trim(string(h), "0123456789abcdef") != "" {
		t.Errorf("link %q is no SHA-256 in hex", h)
	}
}

func TestStripReminders(t *testing.T) {
	const r = "<system-reminder>x</system-reminder>"
	for _, tc := range []struct{ name, in, want string }{
		{"none", " as it is \n", " as it is \n"},
		{"empty", "", ""},
		{"alone", r, ""},
		{"before", r + "\n\nhi", "hi"},
		{"behind", "hi\n" + r + "\n", "hi"},
		{"between", "a " + r + " b", "a  b"},
		{"several", r + "a" + r + "b" + r, "ab"},
		{"over lines", "a<system-reminder>\nx\ny\n</system-reminder>b", "ab"},
		{"empty span", "a<system-reminder></system-reminder>b", "ab"},
		{"not closed", "a <system-reminder>b", "a <system-reminder>b"},
		{"closed, then not closed", r + "a<system-reminder>b", "a<system-reminder>b"},
		{"not opened", "a</system-reminder>b", "a</system-reminder>b"},
		{"closed before it opens", "</system-reminder>a<system-reminder>", "</system-reminder>a<system-reminder>"},
		{"within another: to the first end", "a<system-reminder>x" + r + "b</system-reminder>", "ab</system-reminder>"},
		{"other case is text", "<System-Reminder>x</System-Reminder>", "<System-Reminder>x</System-Reminder>"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tidemark.StripReminders(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	// Time must grow with the text, not with its square.
	many := strings.Repeat("<system-reminder>", 200_000)
	if tidemark.StripReminders(many) != many {
		t.Error("opened ones without an end must stay")
	}
}
