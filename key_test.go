package tidemark_test

import (
	"errors"
	"os"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("a", 128)
	for _, tc := range []struct{ name, in, want string }{
		{"main", "main", "agent:main:main"},
		{"main of an agent", "agent:work:main", "agent:work:main"},
		{"a name", "garden", "agent:main:local:dm:garden"},
		{"a name with spaces", "my garden", ""},
		{"upper case", "agent:Work:WhatsApp:DM:Ann", "agent:work:whatsapp:dm:ann"},
		{"upper case around main", "Agent:Main:MAIN", "agent:main:main"},
		{"Main as a name is main", "Main", "agent:main:main"},
		{"phone number", "agent:main:whatsapp:dm:+49170", "agent:main:whatsapp:dm:+49170"},
		{"address", "agent:main:mail:dm:a.b@c.d", "agent:main:mail:dm:a.b@c.d"},
		{"group", "agent:main:whatsapp:group:120363@g.us", "agent:main:whatsapp:group:120363@g.us"},
		{"heartbeat", "agent:main:heartbeat:system:internal", "agent:main:heartbeat:system:internal"},
		{"unicode", "größe", ""},
		{"unicode agent", "agent:größe:main", ""},
		{"emoji", "😀", ""},
		{"not UTF-8", "a\xffb", ""},
		{"path in an agent", "agent:../../etc:main", ""},
		{"dots in a name", "..", ""},
		{"slash and NUL", "a/b\x00c", ""},
		{"branch", "main#try", "agent:main:main#try"},
		{"branch of a name", "garden#Try-2", "agent:main:local:dm:garden#try-2"},
		{"branch of a full key", "agent:main:web:dm:x#b", "agent:main:web:dm:x#b"},
		{"branch with another mark", "main#a#b", ""},
		{"branch with colons", "main#a:b", ""},
		{"longest part", long, "agent:main:local:dm:" + long},
		{"too long", long + "a", ""},
		{"too long agent", "agent:" + long + "a:main", ""},
		{"too long branch", "main#" + long + "a", ""},
		{"empty", "", ""},
		{"empty branch", "main#", ""},
		{"branch of nothing", "#b", ""},
		{"empty agent", "agent::main", ""},
		{"empty peer", "agent:main:web:dm:", ""},
		{"agent alone", "agent:main", ""},
		{"another word first", "user:main:main", ""},
		{"three parts, not main", "agent:main:web", ""},
		// The reference's other forms have no parts that our five name; the door that makes them from
		// a message spells them in five.
		{"dmScope per-peer", "agent:main:dm:ann", ""},
		{"dmScope per-account-channel-peer", "agent:main:whatsapp:acc:dm:ann", ""},
		{"cron", "agent:main:cron:job", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tidemark.ParseKey(tc.in)
			if string(got) != tc.want || (err == nil) != (tc.want != "") {
				t.Fatalf("got %q, %v; want %q", got, err, tc.want)
			}
			if err != nil && (!errors.Is(err, tidemark.ErrInvalid) || !strings.Contains(err.Error(), "session key") || len(err.Error()) > 400) {
				t.Errorf("error %q", err)
			}
		})
	}
}

// TestKeyRoots holds ParseKey to the rows that the front of the Worker is held to, too.
func TestKeyRoots(t *testing.T) {
	raw, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Key, Root string }
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if key, err := tidemark.ParseKey(r.Key); string(key.Root()) != r.Root || (err == nil) != (r.Root != "") {
			t.Errorf("%q: root %q, %v; want %q", r.Key, key.Root(), err, r.Root)
		}
	}
}

func TestKeyParts(t *testing.T) {
	type parts struct {
		agent, channel, kind, peer, root string
		main, local, owner, scopeMain    bool
		scopePeer                        string
	}
	for key, want := range map[tidemark.Key]parts{
		"agent:a:main":              {agent: "a", root: "agent:a:main", main: true, local: true, owner: true, scopeMain: true},
		"agent:a:main#b":            {agent: "a", root: "agent:a:main", main: true, local: true, owner: true, scopeMain: true},
		"agent:a:local:dm:x":        {agent: "a", channel: "local", kind: "dm", peer: "x", root: "agent:a:local:dm:x", local: true, owner: true},
		"agent:a:web:dm:main#b":     {agent: "a", channel: "web", kind: "dm", peer: "main", root: "agent:a:web:dm:main", local: true, owner: true},
		"agent:a:api:dm:x":          {agent: "a", channel: "api", kind: "dm", peer: "x", root: "agent:a:api:dm:x", local: true, owner: true},
		"agent:a:schedule:dm:s1.x":  {agent: "a", channel: "schedule", kind: "dm", peer: "s1.x", root: "agent:a:schedule:dm:s1.x", local: true, owner: true},
		"agent:a:user:dm:anna":      {agent: "a", channel: "user", kind: "dm", peer: "anna", root: "agent:a:user:dm:anna", scopePeer: "user:anna"},
		"agent:a:whatsapp:dm:+49":   {agent: "a", channel: "whatsapp", kind: "dm", peer: "+49", root: "agent:a:whatsapp:dm:+49", scopePeer: "whatsapp:+49"},
		"agent:a:whatsapp:group:g#": {agent: "a", channel: "whatsapp", kind: "group", peer: "g", root: "agent:a:whatsapp:group:g", scopePeer: "whatsapp:g"},
	} {
		s := key.Scope()
		got := parts{key.Agent(), key.Channel(), key.Kind(), key.Peer(), string(key.Root()), key.Main(), key.Local(), s.Owner, s.Main(), s.Peer}
		if got != want || s.Agent != want.agent || s.Key != key {
			t.Errorf("%s: got %+v, want %+v", key, got, want)
		}
	}
}

// FuzzParseKey: a parsed key is its own normal form, names its parts, and its agent is a folder.
func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"main", "agent:a:main#b", "Größe", "agent:..:web:dm:..", "a:b", "#", "agent:a:b:c:d:e", "\xff", strings.Repeat("ä", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := tidemark.ParseKey(s)
		if err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) || k != "" {
				t.Fatalf("%q: %q, %v", s, k, err)
			}
			return
		}
		if again, err := tidemark.ParseKey(string(k)); again != k || err != nil {
			t.Fatalf("%q gives %q, that gives %q, %v", s, k, again, err)
		}
		if root, err := tidemark.ParseKey(string(k.Root())); root != k.Root() || err != nil {
			t.Fatalf("the root of %q gives %q, %v", k, root, err)
		}
		a := k.Agent()
		if a == "" || strings.Trim(a, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || path.Base(path.Clean("agents/"+a)) != a {
			t.Fatalf("agent %q of %q is no folder", a, s)
		}
		if tidemark.CheckKey("agents/"+a+"/memory/x.md") != nil || len(k) > 700 {
			t.Fatalf("key %q", k)
		}
		if k.Main() != (k.Peer() == "") || !k.Main() && (k.Channel() == "" || k.Kind() == "") {
			t.Fatalf("parts of %q", k)
		}
	})
}

func TestCheckKey(t *testing.T) {
	for _, tc := range []struct {
		name, key string
		ok        bool
	}{
		{"plain", "agents/main/MEMORY.md", true},
		{"unicode", "agents/main/größe.md", true},
		{"dots in a name", "a/..b/c..d/...", true},
		{"longest", strings.Repeat("a", tidemark.MaxKey), true},
		{"too long", strings.Repeat("a", tidemark.MaxKey+1), false},
		{"empty", "", false},
		{"absolute", "/a", false},
		{"ends in a slash", "a/", false},
		{"double slash", "a//b", false},
		{"dot", "a/./b", false},
		{"dots", "a/../b", false},
		{"dots alone", "..", false},
		{"backslash", `a\..\b`, false},
		{"NUL", "a\x00", false},
		{"line break", "a\nb", false},
		{"DEL", "a\x7f", false},
		{"not UTF-8", "a\xff", false},
		{"replacement character", "a\ufffd", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tidemark.CheckKey(tc.key); (err == nil) != tc.ok || err != nil && !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzCheckKey: a key that passes names a file below its folder, in one way only.
func FuzzCheckKey(f *testing.F) {
	for _, s := range []string{"a", "a/b", "../a", "a/..", "a//b", `a\b`, "\xff", "a\x00", "./a", "~/a", strings.Repeat("x/", 600)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if err := tidemark.CheckKey(key); err != nil {
			if !errors.Is(err, tidemark.ErrInvalid) {
				t.Fatalf("%q: %v", key, err)
			}
			return
		}
		if got := path.Join("/base", key); got != "/base/"+key || key == "" || len(key) > tidemark.MaxKey {
			t.Fatalf("%q becomes %q below /base", key, got)
		}
		if !utf8.ValidString(key) || strings.ContainsAny(key, "\\\x00\r\n\x7f") {
			t.Fatalf("%q passed", key)
		}
	})
}
