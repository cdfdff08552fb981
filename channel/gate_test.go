package channel_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

func TestDecide(t *testing.T) {
	const number = "4915123456789"
	person := func(names ...string) channel.Incoming {
		return channel.Incoming{From: names, Reply: tidemark.Address{Platform: "whatsapp", Account: "4400", Peer: names[0]}}
	}
	group := func(mentioned bool) channel.Incoming {
		m := person(number)
		m.Group, m.Mentioned = "G1", mentioned
		return m
	}
	known := func(s channel.Standing) channel.Person { return channel.Person{Name: number, Standing: s} }
	const dm, main = "agent:main:whatsapp:dm:" + number, "agent:main:main"
	for _, row := range []struct {
		name  string
		rules channel.Rules
		m     channel.Incoming
		p     channel.Person
		want  tidemark.Key
		knock bool
	}{
		{"no rules, stranger", channel.Rules{}, person(number), known(""), "", false},
		{"no rules, owner", channel.Rules{}, person(number), known(channel.Owner), main, false},
		{"owner only, stranger", channel.Rules{Access: channel.AccessOwner}, person(number), known(""), "", false},
		{"owner only, approved before", channel.Rules{Access: channel.AccessOwner}, person(number), known(channel.Approved), "", false},
		{"owner only, listed", channel.Rules{Access: channel.AccessOwner, Allow: []string{number}}, person(number), known(""), "", false},
		{"pairing, stranger", channel.Rules{Access: channel.AccessPairing}, person(number), known(""), "", true},
		{"pairing, approved", channel.Rules{Access: channel.AccessPairing}, person(number), known(channel.Approved), dm, false},
		{"pairing, blocked", channel.Rules{Access: channel.AccessPairing}, person(number), known(channel.Blocked), "", false},
		{"list, stranger", channel.Rules{Access: channel.AccessAllow, Allow: []string{"+49 151 9999"}}, person(number), known(""), "", false},
		{"list, as people write", channel.Rules{Access: channel.AccessAllow, Allow: []string{"+49 (151) 234-56789"}}, person(number), known(""), dm, false},
		{"list, with 00", channel.Rules{Access: channel.AccessAllow, Allow: []string{"0049 151 23456789"}}, person(number), known(""), dm, false},
		{"list, second name", channel.Rules{Access: channel.AccessAllow, Allow: []string{number}}, person("DE.x", number), known(""), dm, false},
		{"list, id", channel.Rules{Access: channel.AccessAllow, Allow: []string{"DE.x"}}, person("DE.x"), known(""), dm, false},
		{"list, id in other letters", channel.Rules{Access: channel.AccessAllow, Allow: []string{"de.x"}}, person("DE.x"), known(""), "", false},
		{"list, nothing is nobody", channel.Rules{Access: channel.AccessAllow, Allow: []string{"", " ", "+"}}, person("DE.x"), known(""), "", false},
		{"list, blocked", channel.Rules{Access: channel.AccessAllow, Allow: []string{number}}, person(number), known(channel.Blocked), "", false},
		{"open, stranger", channel.Rules{Access: channel.AccessOpen}, person(number), known(""), dm, false},
		{"open, blocked", channel.Rules{Access: channel.AccessOpen}, person(number), known(channel.Blocked), "", false},
		{"another account", channel.Rules{Access: channel.AccessOpen, Account: "4401"}, person(number), known(""), "", false},
		{"group, off", channel.Rules{Access: channel.AccessOpen}, group(true), known(channel.Owner), "", false},
		{"group, not mentioned", channel.Rules{Access: channel.AccessOpen, Groups: true}, group(false), known(channel.Owner), "", false},
		{"group, mentioned", channel.Rules{Access: channel.AccessOpen, Groups: true}, group(true), known(""), "agent:main:whatsapp:group:4400+_471", false},
		{"group, owner is not main", channel.Rules{Access: channel.AccessPairing, Groups: true}, group(true), known(channel.Owner), "agent:main:whatsapp:group:4400+_471", false},
		{"group, stranger gets no code", channel.Rules{Access: channel.AccessPairing, Groups: true}, group(true), known(""), "", false},
		{"scope main", channel.Rules{Access: channel.AccessOpen, DMScope: channel.ScopeMain}, person(number), known(""), main, false},
		{"scope main, stranger who is not let in", channel.Rules{Access: channel.AccessPairing, DMScope: channel.ScopeMain}, person(number), known(""), "", true},
		{"scope account", channel.Rules{Access: channel.AccessOpen, DMScope: channel.ScopeAccountChannel}, person(number), known(""), "agent:main:whatsapp:dm:4400+" + number, false},
		{"scope peer", channel.Rules{Access: channel.AccessOpen, DMScope: channel.ScopePeer}, person(number), known(""), "agent:main:people:dm:whatsapp+" + number, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.rules.Agent = "main"
			v := row.rules.Decide(row.m, row.p)
			if v.Key != row.want || v.Knock != row.knock || (v.Key == "" && !v.Knock) != (v.Why != "") {
				t.Errorf("%+v, want %q, knock %t", v, row.want, row.knock)
			}
		})
	}
}

// FuzzKey: whatever a platform calls a person, the key is one that ParseKey leaves as it is, and two
// people never have one key.
func FuzzKey(f *testing.F) {
	for _, s := range [][2]string{{"DE.x", "de.x"}, {"_", "_5f"}, {"a+b", "a_2bb"}, {".", ".."}, {"", "_none"}, {strings.Repeat("x", 300), strings.Repeat("x", 301)}, {"é", "e"}} {
		f.Add(s[0], s[1], "4400")
	}
	f.Fuzz(func(t *testing.T, one, other, account string) {
		for _, scope := range []string{"", channel.ScopePeer, channel.ScopeAccountChannel} {
			r := channel.Rules{Agent: "main", Access: channel.AccessOpen, DMScope: scope, Groups: true}
			key := func(name, group string) tidemark.Key {
				m := channel.Incoming{From: []string{name}, Group: group, Mentioned: true, Reply: tidemark.Address{Platform: "whatsapp", Account: account}}
				k := r.Decide(m, channel.Person{Name: name}).Key
				if parsed, err := tidemark.ParseKey(string(k)); err != nil || parsed != k {
					t.Fatalf("%q gives the key %q, %q, %v", name, k, parsed, err)
				}
				if k.Local() {
					t.Fatalf("%q gives the owner's key %q", name, k)
				}
				return k
			}
			if (key(one, "") == key(other, "")) != (one == other) || one != "" && other != "" && (key("x", one) == key("x", other)) != (one == other) {
				t.Fatalf("%q and %q share a key", one, other)
			}
		}
	})
}

func TestCommand(t *testing.T) {
	for _, row := range []struct {
		text, word, rest string
		ok               bool
	}{
		{"/status", "status", "", true},
		{"/Status ", "status", "", true},
		{"/compact\nkeep", "compact", "keep", true},
		{"/model a b", "model", "a b", true},
		{"/statusx", "", "", false},
		{"/", "", "", false},
		{"/home/me/file is full", "", "", false},
		{"status", "", "", false},
		{" /status", "", "", false},
		{"//status", "", "", false},
		{"/stop worrying", "stop", "worrying", true},
		{"please /reset", "", "", false},
	} {
		t.Run(row.text, func(t *testing.T) {
			if word, rest, ok := channel.Command(row.text); word != row.word || rest != row.rest || ok != row.ok {
				t.Errorf("%q %q %t", word, rest, ok)
			}
		})
	}
}
