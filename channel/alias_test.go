package channel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/channel/whatsapp"
)

// TestOwnerStays: whatever of an owner's names changes, and however little the notice says, the others lead to
// them for good; the name that they gave away does not.
func TestOwnerStays(t *testing.T) {
	const day = 24 * time.Hour
	system := func(from, system string) string {
		return fmt.Sprintf(`{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"phone_number_id":"4400"},
			"messages":[{%[1]s,"id":%[1]q,"timestamp":"1795200000","type":"system","system":{%[2]s}}]}}`, from, system)
	}
	update := func(of string) string {
		return `{"field":"user_id_update","value":{"messaging_product":"whatsapp","metadata":{"phone_number_id":"4400"},"user_id_update":[{` + of + `}]}}`
	}
	both := []string{"US.a1", "15550001111"}
	for _, row := range []struct {
		name, notice string
		known        []string // when they were linked
		later        []string // in messages from then on
		alone        []string // each leads to them after months, too
		gone         string   // the name that may be somebody else's
	}{
		{"new number", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222"`), both, []string{"US.a1", "15550002222"}, []string{"US.a1", "15550002222"}, "15550001111"},
		{"new number, by id", system(`"from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222"`), both, []string{"US.a1", "15550002222"}, []string{"US.a1", "15550002222"}, "15550001111"},
		{"new number, with the parent's id", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222","parent_user_id":"US.ENT.p"`), both, nil, []string{"US.a1", "15550002222"}, "15550001111"},
		{"new id", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_user_id","user_id":"US.b2","wa_id":"15550001111"`), both, nil, []string{"15550001111", "US.b2"}, "US.a1"},
		{"new id of who was linked by number", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_user_id","user_id":"US.b2","wa_id":"15550001111"`), both[1:], nil, []string{"15550001111", "US.b2"}, ""},
		{"id update", update(`"wa_id":"15550001111","user_id":{"previous":"US.a1","current":"US.b2"}`), both, nil, []string{"15550001111", "US.b2"}, "US.a1"},
		{"id update under one parent", update(`"wa_id":"15550001111","user_id":{"previous":"US.a1","current":"US.b2"},"parent_user_id":{"previous":"US.ENT.p","current":"US.ENT.p"}`),
			append([]string{"US.ENT.p"}, both...), nil, []string{"15550001111", "US.b2", "US.ENT.p"}, "US.a1"},
		{"number that was retired and is used again", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222"`) + "," +
			system(`"from":"15550002222","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550001111"`), both, nil, []string{"15550001111", "US.a1"}, "15550002222"},
		{"new number of who was linked by id", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222"`), both[:1], nil, []string{"15550002222", "US.a1"}, "15550001111"},
		{"new number of who was linked by number", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222"`), both[1:], nil, []string{"15550002222", "US.a1"}, "15550001111"},
		{"new number and id of who was linked by id", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222","user_id":"US.b2"`), both[:1], nil, []string{"15550002222", "US.b2"}, "15550001111"},
		{"new number and id of who was linked by number", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222","user_id":"US.b2"`), both[1:], nil, []string{"15550002222", "US.b2"}, "15550001111"},
		{"new number, told without an id first", system(`"from":"15550001111"`, `"type":"user_changed_number","wa_id":"15550002222"`) + "," +
			system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222"`), both[1:], nil, []string{"15550002222"}, "15550001111"},
		{"new number, with the id as it was", system(`"from":"15550001111","from_user_id":"US.a1"`, `"type":"user_changed_number","wa_id":"15550002222","user_id":"US.a1"`), both[:1], nil, []string{"15550002222", "US.a1"}, "15550001111"},
		{"id update of who was linked by id", update(`"wa_id":"15550001111","user_id":{"previous":"US.a1","current":"US.b2"}`), both[:1], nil, []string{"15550001111", "US.b2"}, "US.a1"},
		{"id update of who was linked by number", update(`"wa_id":"15550001111","user_id":{"previous":"US.a1","current":"US.b2"}`), both[1:], nil, []string{"15550001111", "US.b2"}, "US.a1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			if _, err := r.book.Stand(t.Context(), "fake", row.known, "Ada", channel.Owner); err != nil {
				t.Fatal(err)
			}
			for range 2 { // platforms tell twice
				as, err := whatsapp.New(whatsapp.Config{AppSecret: "x"}).Decode([]byte(`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[` + row.notice + `]}]}`))
				if err != nil || len(as) == 0 {
					t.Fatalf("%+v, %v", as, err)
				}
				for _, a := range as {
					a.Alias.Platform = "fake"
					if err := r.book.Rename(t.Context(), *a.Alias); err != nil {
						t.Fatal(err)
					}
				}
			}
			for n := range 40 {
				if row.later != nil {
					if p := r.who(row.later...); p.Standing != channel.Owner {
						t.Fatalf("day %d: the owner is %+v", n, p)
					}
				}
				r.pass(day)
			}
			for _, name := range row.alone {
				if p := r.who(name); p.Standing != channel.Owner {
					t.Errorf("%s is %+v", name, p)
				}
			}
			if row.gone != "" {
				if p := r.who(row.gone); p.Standing != channel.Stranger {
					t.Errorf("%s is %+v still", row.gone, p)
				}
			}
		})
	}
}

// TestLiveNames: a name that was to end and is seen again stays, unless it is a number that was given away.
func TestLiveNames(t *testing.T) {
	for _, row := range []struct {
		name     string
		old, new string
		seen     []string
		want     channel.Standing // of old, long after
	}{
		{"an id alone", "US.a1", "US.b2", []string{"US.a1"}, channel.Owner},
		{"a number alone", "15550001111", "15550002222", []string{"15550001111"}, channel.Stranger},
		{"a number that is late, beside the id", "15550001111", "15550002222", []string{"US.a1", "15550001111"}, channel.Stranger},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			if _, err := r.book.Stand(t.Context(), "fake", []string{"US.a1", "15550001111"}, "Ada", channel.Owner); err != nil {
				t.Fatal(err)
			}
			if err := r.book.Rename(t.Context(), channel.Alias{Platform: "fake", Old: row.old, New: row.new}); err != nil {
				t.Fatal(err)
			}
			r.pass(24 * time.Hour)
			r.who(row.seen...)
			r.pass(40 * 24 * time.Hour)
			if p := r.who(row.old); p.Standing != row.want {
				t.Errorf("%s is %+v, want %q", row.old, p, row.want)
			}
		})
	}
}

// TestNumberTaken: what a platform tells of somebody who is not known leaves them in nobody's place.
func TestNumberTaken(t *testing.T) {
	id, number := "US.a1", "15550001111"
	for _, row := range []struct {
		name  string
		known []string
		told  channel.Alias
		by    []string         // a message
		want  channel.Standing // of who wrote it
	}{
		{"a new number that was the owner's", []string{number}, channel.Alias{Old: "15550009999", New: number}, []string{number}, channel.Stranger},
		{"beside another id", []string{number}, channel.Alias{Old: "15550009999", New: number, From: []string{"US.x", "15550009999"}}, []string{number}, channel.Stranger},
		{"by another id", []string{id, number}, channel.Alias{Old: "US.x", New: number, From: []string{"US.x", "15550009999"}}, []string{number}, channel.Stranger},
		{"the owner by their id", []string{id, number}, channel.Alias{Old: "15550009999", New: number}, []string{id}, channel.Owner},
		{"an id for another, with the owner's number", []string{id, number}, channel.Alias{Old: number, New: "US.y", From: []string{"US.x", number}, Keep: true}, []string{"US.y"}, channel.Stranger},
		{"an id is nobody else's", []string{id}, channel.Alias{Old: "US.x", New: id}, []string{id}, channel.Owner},
		{"a number beside an id that the owner has by it", []string{id}, channel.Alias{Old: number, New: id}, []string{id}, channel.Owner},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, open)
			if _, err := r.book.Stand(t.Context(), "fake", row.known, "Ada", channel.Owner); err != nil {
				t.Fatal(err)
			}
			row.told.Platform = "fake"
			for range 2 {
				if err := r.book.Rename(t.Context(), row.told); err != nil {
					t.Fatal(err)
				}
				if p := r.who(row.by...); p.Standing != row.want {
					t.Errorf("%q is %+v, want %q", row.by, p, row.want)
				}
			}
		})
	}
}
