package whatsapp

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

const (
	sum64 = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="                     // SHA-256 of "test" as webhooks write it
	sumHx = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // and as contracts do
)

// hook wraps value objects' inner fields in Meta's envelope.
func hook(fields ...string) []byte {
	var changes []string
	for _, f := range fields {
		changes = append(changes, `{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550001111","phone_number_id":"4400"},`+f+`}}`)
	}
	return []byte(`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[` + strings.Join(changes, ",") + `]}]}`)
}

// said is one message of Ada's.
func said(fields string) []byte {
	return hook(`"contacts":[{"profile":{"name":"Ada"},"wa_id":"15557654321","user_id":"US.9aZ"}],"messages":[{"from":"15557654321","from_user_id":"US.9aZ","id":"wamid.A1","timestamp":"1795200000",` + fields + `}]`)
}

func decode(t *testing.T, body []byte) []channel.Arrival {
	t.Helper()
	out, err := New(Config{}).Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTypes has a row for each row of the API's table of message types.
func TestTypes(t *testing.T) {
	for _, row := range []struct {
		name, fields string
		text         string
		media        []channel.Media
	}{
		{"text", `"type":"text","text":{"body":"hi \u00e9\ud83c\udf0a"}`, "hi é🌊", nil},
		{"image", `"type":"image","image":{"id":"77","mime_type":"image/jpeg","sha256":"` + sum64 + `","caption":"receipt"}`, "receipt",
			[]channel.Media{{ID: "77", Type: "image/jpeg", SHA256: sumHx, Note: "image"}}},
		{"image with a hash in hex", `"type":"image","image":{"id":"77","mime_type":"image/png","sha256":"` + strings.ToUpper(sumHx) + `"}`, "",
			[]channel.Media{{ID: "77", Type: "image/png", SHA256: sumHx, Note: "image"}}},
		{"image with a hash that is none", `"type":"image","image":{"id":"77","mime_type":"image/png","sha256":"…"}`, "",
			[]channel.Media{{ID: "77", Type: "image/png", Note: "image"}}},
		{"video", `"type":"video","video":{"id":"78","mime_type":"video/mp4","caption":"look"}`, "look",
			[]channel.Media{{ID: "78", Type: "video/mp4", Note: "video"}}},
		{"sticker", `"type":"sticker","sticker":{"id":"79","mime_type":"image/webp","animated":true}`, "",
			[]channel.Media{{ID: "79", Type: "image/webp", Note: "sticker"}}},
		{"voice note", `"type":"audio","audio":{"id":"80","mime_type":"audio/ogg; codecs=opus","voice":true}`, "",
			[]channel.Media{{ID: "80", Type: "audio/ogg; codecs=opus", Voice: true, Note: "voice note"}}},
		{"audio", `"type":"audio","audio":{"id":"80","mime_type":"audio/mpeg","voice":false}`, "",
			[]channel.Media{{ID: "80", Type: "audio/mpeg", Note: "audio"}}},
		{"document", `"type":"document","document":{"id":"81","filename":"a b.pdf","mime_type":"application/pdf","caption":"sign"}`, "sign",
			[]channel.Media{{ID: "81", Type: "application/pdf", Name: "a b.pdf", Note: "document"}}},
		{"location", `"type":"location","location":{"latitude":52.5163,"longitude":13.3777,"name":"Gate","address":"Pariser\nPlatz","url":"https://x.test"}`,
			"Location: Gate, Pariser Platz (52.5163, 13.3777) https://x.test", nil},
		{"bare location", `"type":"location","location":{"latitude":-1,"longitude":2.50}`, "Location: (-1, 2.50)", nil},
		{"contacts", `"type":"contacts","contacts":[{"name":{"formatted_name":"Bob B"},"phones":[{"phone":"+1 555","wa_id":"1555"}],"emails":[{"email":"b@x.test"}]},{"name":{"first_name":"Eve"}}]`,
			"Contact: Bob B, +1 555, b@x.test\nContact: Eve", nil},
		{"button of ours", `"type":"interactive","interactive":{"type":"button_reply","button_reply":{"id":"approve:42","title":"Approve"}}`, "Approve", nil},
		{"list of ours", `"type":"interactive","interactive":{"type":"list_reply","list_reply":{"id":"3","title":"Oak","description":"hard"}}`, "Oak: hard", nil},
		{"form", `"type":"interactive","interactive":{"type":"nfm_reply","nfm_reply":{"name":"flow","body":"Sent","response_json":"{\"a\":1}"}}`, `Form: {"a":1}`, nil},
		{"button of a template", `"type":"button","button":{"payload":"P","text":"Yes"}`, "Yes", nil},
		{"order", `"type":"order","order":{"catalog_id":"1","text":"soon","product_items":[{"product_retailer_id":"sku-1","quantity":2,"item_price":10.5,"currency":"EUR"}]}`,
			"Order:\n- 2 × sku-1, 10.5 EUR each\nsoon", nil},
		{"forwarded", `"type":"text","context":{"forwarded":true},"text":{"body":"/reset"}`, "[Forwarded] /reset", nil},
		{"forwarded often", `"type":"image","context":{"frequently_forwarded":true},"image":{"id":"77"}`, "[Forwarded]", []channel.Media{{ID: "77", Note: "image"}}},
		{"about a product", `"type":"text","context":{"referred_product":{"catalog_id":"1","product_retailer_id":"sku-1"}},"text":{"body":"blue?"}`, "blue?\n[About product sku-1]", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := decode(t, said(row.fields))
			if len(out) != 1 || out[0].Message == nil {
				t.Fatalf("got %+v", out)
			}
			m := out[0].Message
			if m.Text != row.text || !reflect.DeepEqual(m.Media, row.media) {
				t.Errorf("text %q media %+v, want %q %+v", m.Text, m.Media, row.text, row.media)
			}
			if m.ID != "wamid.A1" || m.Message != "wamid.A1" || m.Name != "Ada" || !m.At.Equal(time.Unix(1795200000, 0)) ||
				!reflect.DeepEqual(m.From, []string{"US.9aZ", "15557654321"}) || m.Kind == "" || m.Group != "" || m.Mentioned ||
				m.Reply != (tidemark.Address{Platform: Name, Account: "4400", Peer: "15557654321"}) {
				t.Errorf("envelope: %+v", m)
			}
		})
	}
}

// TestOdd has what is not acted on. Nothing of a person's own words may be in the note.
func TestOdd(t *testing.T) {
	for _, row := range []struct {
		name string
		body []byte
		want string
	}{
		{"reaction", said(`"type":"reaction","reaction":{"message_id":"wamid.B","emoji":"\ud83d\udc4d"}`), "message of type reaction"},
		{"reaction taken back", said(`"type":"reaction","reaction":{"message_id":"wamid.B"}`), "message of type reaction"},
		{"unsupported", said(`"type":"unsupported","errors":[{"code":131051,"title":"secret"}]`), "message of type unsupported 131051"},
		{"unknown type", said(`"type":"hologram","hologram":{"a":"secret"}`), "message of type hologram"},
		{"hostile type", said(`"type":"a\nb<script>"`), "message of type a?b?script?"},
		{"empty text", said(`"type":"text","text":{"body":""}`), "message of type text"},
		{"media without id", said(`"type":"image","image":{}`), "message of type image"},
		{"media missing", said(`"type":"image"`), "message of type image"},
		{"system of another kind", said(`"type":"system","system":{"type":"customer_identity_changed"}`), "system customer_identity_changed"},
		{"number changed to itself", said(`"type":"system","system":{"type":"user_changed_number","wa_id":"15557654321","user_id":"US.9aZ"}`), ""},
		{"message without id", hook(`"messages":[{"from":"1","type":"text","text":{"body":"secret"}}]`), "message"},
		{"message from nobody", hook(`"messages":[{"id":"wamid.1","type":"text","text":{"body":"secret"}}]`), "message without an address"},
		{"message of another shape", hook(`"messages":[{"id":7}]`), "message"},
		{"status unknown", hook(`"statuses":[{"id":"wamid.B","status":"warming"}]`), "status warming"},
		{"status of another shape", hook(`"statuses":["x"]`), "status"},
		{"account error", hook(`"errors":[{"code":130429,"title":"secret"}]`), "error 130429"},
		{"other field", []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"account_update","value":{"event":"secret"}}]}]}`), "field account_update"},
		{"value of another shape", []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":[1]}]}]}`), "value of messages"},
		{"entry of another shape", []byte(`{"object":"whatsapp_business_account","entry":[7]}`), "entry"},
		{"change of another shape", []byte(`{"object":"whatsapp_business_account","entry":[{"changes":["x"]}]}`), "change"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := decode(t, row.body)
			if row.want == "" {
				if len(out) == 0 || out[0].Message != nil {
					t.Fatalf("got %+v", out)
				}
				return
			}
			if out[0] != (channel.Arrival{Odd: row.want}) {
				t.Fatalf("got %+v, want %q", out, row.want)
			}
			typed := strings.HasPrefix(row.want, "message of type ") && !strings.Contains(row.want, "reaction") // it came from somebody
			if typed != (len(out) == 2) || len(out) > 2 {
				t.Fatalf("got %+v", out)
			}
			if typed && (!out[1].Message.Note || strings.Contains(out[1].Message.Text, "secret") || strings.ContainsAny(out[1].Message.Text, "<\n")) {
				t.Errorf("note %+v", out[1].Message)
			}
		})
	}
}

// TestOddFields: one field of another form takes nothing else of a message with it, and what is not readable is noted.
func TestOddFields(t *testing.T) {
	note := func(kind string) string {
		return "[A message of type \"" + kind + "\" came, whose content is not known here.]"
	}
	for _, row := range []struct {
		fields, text string
		note, odd    bool // odd: something is not read
	}{
		{`"type":"text","text":{"body":"hi"},"context":{"forwarded":"true"}`, "[Forwarded] hi", false, false},
		{`"type":"text","text":{"body":"hi"},"context":{"forwarded":"false","frequently_forwarded":0}`, "hi", false, false},
		{`"type":"text","text":{"body":"hi"},"context":"str"`, "hi", false, true},
		{`"type":"text","text":{"body":"hi"},"context":{"from":7,"id":"wamid.B","forwarded":true}`, "[Forwarded] hi", false, true},
		{`"type":"text","text":{"body":"hi"},"system":"boo"`, "hi", false, true},
		{`"type":"text","order":[],"text":{"body":"hi"}`, "hi", false, true},
		{`"type":"text","text":{"body":"hi"},"group_id":null,"contacts":{"a":1},"errors":"x","referral":{"source_url":7}`, "hi", false, true},
		{`"text":{"body":"hi"}`, "hi", false, false},
		{`"type":7,"text":{"body":"hi"}`, "hi", false, true},
		{`"type":"image","image":{"id":"77","caption":"hi","voice":"no"}`, "hi", false, true},
		{`"type":"edit","edit":{"original_message_id":"wamid.A0","message":{"type":"text","text":{"body":"at eight"},"context":"x"}}`, "at eight", false, true},
		{`"type":"image","image":"oops"`, note("image"), true, true},
		{`"type":"text","text":"plain"`, note("text"), true, true},
		{`"type":"text","text":{"body":7}`, note("text"), true, true},
		{`"type":"interactive","interactive":"x"`, note("interactive"), true, true},
		{`"type":"location","location":{"latitude":[1]}`, note("location"), true, true},
		{`"type":"edit","edit":"zz"`, note("edit"), true, true},
		{`"type":"edit","edit":{"original_message_id":"wamid.A0","message":{"type":"text","text":"plain"}}`, note("edit"), true, true},
		{`"hologram":{}`, "[A message came, whose content is not known here.]", true, true},
	} {
		out := decode(t, said(row.fields))
		m := out[len(out)-1].Message
		switch {
		case m == nil || m.Text != row.text || m.Note != row.note || m.Reply.Peer != "15557654321" || m.ID != "wamid.A1":
			t.Errorf("%s: %+v", row.fields, m)
		case row.odd != (out[0].Odd != ""):
			t.Errorf("%s: noted %q", row.fields, out[0].Odd)
		case (m.Edits != "") != (row.text == "at eight") || (m.Quoted != "") != strings.Contains(row.fields, "wamid.B"):
			t.Errorf("%s: edits %q, quotes %q", row.fields, m.Edits, m.Quoted)
		}
	}
	value := []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":{"metadata":{"display_phone_number":15550001111,"phone_number_id":"4400"},"messages":[{"from":"1","id":"wamid.A1","type":"text","text":{"body":"hi"}}]}}]}]}`)
	if out := decode(t, value); len(out) != 2 || out[0].Odd != "value of messages" || out[1].Message == nil || out[1].Message.Text != "hi" {
		t.Errorf("a number that is a number: %+v", out)
	}
}

func TestPeople(t *testing.T) {
	for _, row := range []struct {
		name, fields string
		from         []string
		peer         string
		called       string
	}{
		{"both names", `"contacts":[{"profile":{"name":"Ada"},"wa_id":"15557654321","user_id":"US.9aZ"}],"messages":[{"from":"15557654321","from_user_id":"US.9aZ",`, []string{"US.9aZ", "15557654321"}, "15557654321", "Ada"},
		{"without a number", `"contacts":[{"profile":{"username":"ada"},"user_id":"US.9aZ"}],"messages":[{"from_user_id":"US.9aZ",`, []string{"US.9aZ"}, "US.9aZ", "ada"},
		{"of a portfolio", `"messages":[{"from_user_id":"US.9aZ","from_parent_user_id":"US.ENT.1",`, []string{"US.9aZ", "US.ENT.1"}, "US.9aZ", ""},
		{"number alone, the contact knows more", `"contacts":[{"wa_id":"2","user_id":"US.2"},{"profile":{"name":"Ada"},"wa_id":"15557654321","user_id":"US.9aZ","parent_user_id":"US.ENT.1"}],"messages":[{"from":"+1 (555) 765-4321",`, []string{"US.9aZ", "15557654321", "US.ENT.1"}, "15557654321", "Ada"},
		{"contact of somebody else", `"contacts":[{"profile":{"name":"Eve"},"wa_id":"2","user_id":"US.2"}],"messages":[{"from":"1",`, []string{"1"}, "1", ""},
		{"named by the contact alone", `"contacts":[{"profile":{"name":"Ada"},"wa_id":"1"}],"messages":[{`, []string{"1"}, "1", "Ada"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := decode(t, hook(row.fields+`"id":"wamid.1","timestamp":1795200000,"type":"text","text":{"body":"x"}}]`))[0].Message
			if m == nil || !reflect.DeepEqual(m.From, row.from) || m.Reply.Peer != row.peer || m.Name != row.called || m.At.Unix() != 1795200000 {
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestReplyAndGroups(t *testing.T) {
	m := decode(t, said(`"type":"text","text":{"body":"x"},"context":{"from":"15550001111","id":"wamid.B7"}`))[0].Message
	if m.Quoted != "wamid.B7" || m.Mentioned {
		t.Errorf("reply: %+v", m)
	}
	for _, row := range []struct {
		name, fields string
		mentioned    bool
	}{
		{"plain", `"type":"text","text":{"body":"hello all"}`, false},
		{"mention", `"type":"text","text":{"body":"hello @15550001111"}`, true},
		{"of another", `"type":"text","text":{"body":"hello @15550002222"}`, false},
		{"mention beside a picture", `"type":"image","image":{"id":"m","mime_type":"image/png","caption":"@15550001111 what is this?"}`, true},
		{"picture beside other words", `"type":"image","image":{"id":"m","mime_type":"image/png","caption":"what is this?"}`, false},
		{"reply to us", `"type":"text","text":{"body":"yes"},"context":{"from":"15550001111","id":"wamid.B"}`, true},
		{"reply to another", `"type":"text","text":{"body":"yes"},"context":{"from":"1555","id":"wamid.B"}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := decode(t, said(`"group_id":"G.1",`+row.fields))[0].Message
			if m.Group != "G.1" || m.Mentioned != row.mentioned || m.Reply != (tidemark.Address{Platform: Name, Account: "4400", Peer: "G.1", Group: true}) {
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	update := func(fields string) []byte {
		return []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"user_id_update","value":{"metadata":{"phone_number_id":"4400"},"user_id_update":[{` + fields + `}]}}]}]}`)
	}
	for _, row := range []struct {
		name string
		body []byte
		want []string
	}{
		{"number", hook(`"messages":[{"from":"1","id":"w","type":"system","system":{"type":"user_changed_number","wa_id":"2"}}]`), []string{"1>2"}},
		{"number, as it was told once", hook(`"messages":[{"from":"1","id":"w","type":"system","system":{"type":"customer_changed_number","new_wa_id":"2"}}]`), []string{"1>2"}},
		{"user id", hook(`"messages":[{"from_user_id":"US.1","id":"w","type":"system","system":{"type":"user_changed_user_id","user_id":"US.2"}}]`), []string{"US.1>US.2"}},
		{"both", hook(`"messages":[{"from":"1","from_user_id":"US.1","id":"w","type":"system","system":{"type":"user_changed_number","wa_id":"2","user_id":"US.2"}}]`),
			[]string{"US.1>US.2", "US.1>2", "1>US.2", "1>2"}},
		{"update", update(`"wa_id":"1","user_id":{"previous":"US.1","current":"US.2"}`), []string{"US.1>US.2", "1>US.2"}},
		{"update without a number", update(`"user_id":{"previous":"US.1","current":"US.2"},"parent_user_id":{"previous":"US.ENT.1","current":"US.ENT.2"}`),
			[]string{"US.1>US.2", "US.1>US.ENT.2", "US.ENT.1>US.2", "US.ENT.1>US.ENT.2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, a := range decode(t, row.body) {
				if a.Alias == nil || a.Alias.Platform != Name || a.Alias.Account != "4400" {
					t.Fatalf("got %+v", a)
				}
				got = append(got, a.Alias.Old+">"+a.Alias.New)
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	body := hook(`"statuses":[
		{"id":"wamid.B8","status":"read","timestamp":"1795200012","recipient_id":"1","biz_opaque_callback_data":"k/1"},
		{"id":"wamid.B8","status":"sent","timestamp":"1795200010","recipient_id":"1","biz_opaque_callback_data":"k/1"},
		{"id":"wamid.B8","status":"sent","timestamp":"1795200010","recipient_id":"1"},
		{"id":"wamid.B8","status":"played","timestamp":"1795200013","recipient_id":"2"},
		{"id":"wamid.B9","status":"delivered","timestamp":"x","recipient_id":"1"},
		{"id":"wamid.C1","status":"failed","timestamp":"1795200011","recipient_id":"1","errors":[{"code":131047,"title":"Re-engagement message","message":"Re-engagement message","error_data":{"details":"more than 24 hours"}}],"biz_opaque_callback_data":"k/2"},
		{"id":"wamid.C2","status":"failed","timestamp":"1795200011","recipient_id":"1"}]`)
	at := func(s int64) time.Time { return time.Unix(1795200000+s, 0).UTC() }
	want := []tidemark.Delivery{
		{Ref: "k/1", ID: "wamid.B8", Status: "read", At: at(12)},
		{Ref: "k/1", ID: "wamid.B8", Status: "sent", At: at(10)},
		{ID: "wamid.B8", Status: "read", At: at(13)},
		{ID: "wamid.B9", Status: "delivered"},
		{Ref: "k/2", ID: "wamid.C1", Status: "failed", At: at(11), Error: &tidemark.SendError{Class: tidemark.SendClosed, Code: 131047, Text: "Re-engagement message: more than 24 hours"}},
		{ID: "wamid.C2", Status: "failed", At: at(11), Error: &tidemark.SendError{Class: tidemark.SendFailed}},
	}
	var got []tidemark.Delivery
	for _, a := range decode(t, body) {
		if a.Status == nil {
			t.Fatalf("got %+v", a)
		}
		got = append(got, *a.Status)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestBatch has as many changes as a webhook may, each thing once though the body has all twice.
func TestBatch(t *testing.T) {
	var fields []string
	for i := range 1000 {
		fields = append(fields, fmt.Sprintf(`"messages":[{"from":"1","id":"wamid.%d","timestamp":"1795200000","type":"text","text":{"body":"%d"}}]`, i%500, i%500))
	}
	out := decode(t, hook(fields...))
	if len(out) != 500 {
		t.Fatalf("%d arrivals, want 500", len(out))
	}
	for i, a := range out {
		if a.Message == nil || a.Message.Text != fmt.Sprint(i) {
			t.Fatalf("arrival %d is %+v", i, a)
		}
	}
}

func TestRefusedBodies(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 1<<17)
	for _, row := range []struct{ name, body string }{
		{"empty", ""},
		{"no JSON", "hello"},
		{"cut", string(said(`"type":"text"`)[:50])},
		{"array", `[]`},
		{"another object", `{"object":"page","entry":[]}`},
		{"deep", `{"object":"whatsapp_business_account","entry":` + deep},
		{"deeper than anything documented", `{"object":"whatsapp_business_account","x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`},
		{"deep and well-formed", `{"object":"whatsapp_business_account","x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`},
		{"too large", `{"object":"whatsapp_business_account","entry":[],"x":"` + strings.Repeat("x", channel.MaxBody) + `"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if out, err := New(Config{}).Decode([]byte(row.body)); !errors.Is(err, tidemark.ErrInvalid) {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
	body := `{"object":"whatsapp_business_account","x":"` + strings.Repeat(`[{\"`, 100) + `","entry":[]}`
	if _, err := New(Config{}).Decode([]byte(body)); err != nil {
		t.Errorf("brackets in a string: %v", err)
	}
}

// TestContract: what any courier keeps. A character is counted as UTF-16 does, which is never less than
// any other way.
func TestContract(t *testing.T) {
	tidemarktest.Couriers(t, New(Config{}), tidemark.Address{Platform: Name, Peer: "15557654321"}, 4096, units)
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

// FuzzParts: the laws of Parts, for any text.
func FuzzParts(f *testing.F) {
	f.Add("# Title\n\n**bold** `code`\n```\nx\n```\n")
	f.Add(strings.Repeat("- one **bold** thing\n", 300))
	c := New(Config{})
	f.Fuzz(func(t *testing.T, text string) {
		tidemarktest.CheckParts(t, c, tidemark.Address{Platform: Name, Peer: "1"}, 4096, units, text)
	})
}

// TestAmends: what a person corrects or takes back names the message that it is about; what the owner wrote by the app is
// of the conversation with whom it went to. A neighbour in the same body stays as it is.
func TestAmends(t *testing.T) {
	out := decode(t, said(`"type":"edit","edit":{"original_message_id":"wamid.A0","message":{"type":"text","text":{"body":"at eight"},"context":{"id":"wamid.A0"}}}`))
	if len(out) != 1 || out[0].Message == nil || out[0].Message.Edits != "wamid.A0" || out[0].Message.Text != "at eight" || out[0].Message.ID != "wamid.A1" {
		t.Errorf("edit: %+v", out)
	}
	out = decode(t, said(`"type":"revoke","revoke":{"original_message_id":"wamid.A0"}`))
	if len(out) != 1 || out[0].Message == nil || out[0].Message.Revokes != "wamid.A0" || out[0].Message.Text != "" {
		t.Errorf("revoke: %+v", out)
	}
	out = decode(t, []byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"smb_message_echoes","value":{"metadata":{"display_phone_number":"15550001111","phone_number_id":"4400"},
		"message_echoes":[{"from":"15550001111","to":"+1 555 765-4321","id":"wamid.E1","timestamp":"1795200000","type":"text","text":{"body":"I come at nine"}},
			{"from":"15550001111","id":"wamid.E2","type":"text","text":{"body":"to nobody"}}]}},
		{"field":"messages","value":{"metadata":{"phone_number_id":"4400"},"messages":[{"from":"15557654321","id":"wamid.A2","type":"text","text":{"body":"fine"}}]}}]}]}`))
	if len(out) != 3 || out[0].Message == nil || !out[0].Message.Echo || out[0].Message.From[0] != "15557654321" || out[0].Message.Text != "I come at nine" || out[0].Message.Reply.Account != "4400" ||
		out[1].Odd != "echo without an address" || out[2].Message == nil || out[2].Message.Echo || out[2].Message.Text != "fine" {
		t.Errorf("echoes: %+v", out)
	}
}
