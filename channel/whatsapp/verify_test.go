package whatsapp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

func sign(secret string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

func TestVerify(t *testing.T) {
	const secret = "s3cret"
	body := []byte(`{"a":"\u00e9 \/"}`)
	good := sign(secret, body)
	for _, row := range []struct {
		name, secret, header string
		body                 []byte
		ok                   bool
	}{
		{"right", secret, good, body, true},
		{"right, in capitals", secret, "sha256=" + strings.ToUpper(good[7:]), body, true},
		{"of another secret", secret, sign("other", body), body, false},
		{"of another body", secret, good, []byte(`{"a":"\u00e9 /"}`), false},
		{"encoded anew", secret, good, []byte(`{"a":"é /"}`), false},
		{"missing", secret, "", body, false},
		{"without its prefix", secret, good[7:], body, false},
		{"of SHA-1", secret, "sha1=" + good[7:], body, false},
		{"cut", secret, good[:40], body, false},
		{"empty", secret, "sha256=", body, false},
		{"no hex", secret, "sha256=" + strings.Repeat("zz", 32), body, false},
		{"no secret configured", "", sign("", body), body, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := http.Header{}
			if row.header != "" {
				h.Set("x-hub-signature-256", row.header)
			}
			err := New(Config{AppSecret: row.secret}).Verify(h, row.body)
			if (err == nil) != row.ok || err != nil && !errors.Is(err, tidemark.ErrUnauthorized) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHandshake(t *testing.T) {
	for _, row := range []struct {
		name, token string
		query       url.Values
		want        string
	}{
		{"right", "tok", url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {"tok"}, "hub.challenge": {"1158201444"}}, "1158201444"},
		{"another token", "tok", url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {"tok2"}, "hub.challenge": {"1"}}, ""},
		{"another mode", "tok", url.Values{"hub.mode": {"unsubscribe"}, "hub.verify_token": {"tok"}, "hub.challenge": {"1"}}, ""},
		{"nothing", "tok", url.Values{}, ""},
		{"no token configured", "", url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {""}, "hub.challenge": {"1"}}, ""},
		{"a long challenge", "tok", url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {"tok"}, "hub.challenge": {strings.Repeat("1", 2000)}}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := New(Config{VerifyToken: row.token}).Handshake(row.query)
			if got != row.want || (err == nil) != (row.want != "") || err != nil && !errors.Is(err, tidemark.ErrForbidden) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// FuzzVerify: only the sum under the secret verifies.
func FuzzVerify(f *testing.F) {
	f.Add(sign("s", []byte("x")), []byte("x"))
	f.Add("sha256=", []byte(""))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		err := New(Config{AppSecret: "s"}).Verify(http.Header{"X-Hub-Signature-256": {header}}, body)
		if right := strings.HasPrefix(header, "sha256=") && "sha256="+strings.ToLower(header[7:]) == sign("s", body); right != (err == nil) {
			t.Errorf("header %q: %v", header, err)
		}
	})
}

// FuzzDecode: nothing panics, each arrival is one thing, and no id comes twice.
func FuzzDecode(f *testing.F) {
	f.Add(said(`"type":"text","text":{"body":"hi \u00e9"},"context":{"from":"15550001111","id":"wamid.B7"}`))
	f.Add(said(`"type":"image","image":{"id":"77","mime_type":"image/jpeg","sha256":"` + sum64 + `"}`))
	f.Add(said(`"type":"system","system":{"type":"user_changed_number","wa_id":"2"}`))
	f.Add(said(`"type":"location","location":{"latitude":52.5,"longitude":1e1}`))
	f.Add(hook(`"statuses":[{"id":"wamid.C","status":"failed","errors":[{"code":131047}]}]`, `"messages":[{"id":"a","from":"1"},{"id":"a","from":"1"}]`))
	f.Add([]byte(`{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"user_id_update","value":{"user_id_update":[{"user_id":{"previous":"US.1","current":"US.2"}}]}}]}]}`))
	c := New(Config{})
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := c.Decode(body)
		if err != nil && !errors.Is(err, tidemark.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
		seen := map[string]bool{}
		for _, a := range out {
			set := 0
			if m := a.Message; m != nil {
				set++
				if m.ID == "" || seen[m.ID] || len(m.From) == 0 || m.Reply.Peer == "" || m.Reply.Account == "" || m.Text == "" && len(m.Media) == 0 {
					t.Fatalf("message %+v", m)
				}
				seen[m.ID] = true
			}
			if a.Status != nil {
				set++
			}
			if a.Alias != nil {
				set++
			}
			if a.Odd != "" {
				set++
			}
			if set != 1 {
				t.Fatalf("%d fields are set: %+v", set, a)
			}
		}
	})
}

// roundTrip is a transport of one function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestBegun: a send that broke may have arrived once any of its body was asked for, in whichever way a
// transport does that; a body that is asked for anew counts from the beginning.
func TestBegun(t *testing.T) {
	for _, row := range []struct {
		name  string
		touch func(*http.Request) error
		class tidemark.SendClass
	}{
		{"not asked for", func(*http.Request) error { return nil }, tidemark.SendAgain},
		{"read", func(r *http.Request) error { _, err := r.Body.Read(make([]byte, 1)); return err }, tidemark.SendUnknown},
		{"written", func(r *http.Request) error { _, err := r.Body.(io.WriterTo).WriteTo(io.Discard); return err }, tidemark.SendUnknown},
		{"read, and anew", func(r *http.Request) error {
			_, err := r.Body.Read(make([]byte, 1))
			_, again := r.GetBody()
			return errors.Join(err, again)
		}, tidemark.SendAgain},
	} {
		t.Run(row.name, func(t *testing.T) {
			broken := roundTrip(func(r *http.Request) (*http.Response, error) {
				if err := row.touch(r); err != nil {
					t.Error(err)
				}
				return nil, errors.New("broken by token t0ken")
			})
			_, err := New(Config{Token: "t0ken", Transport: broken}).Send(t.Context(), tidemark.Outgoing{To: tidemark.Address{Account: "1", Peer: "1"}, Text: "x"})
			var s *tidemark.SendError
			if !errors.As(err, &s) || s.Class != row.class || strings.Contains(s.Text, "t0ken") {
				t.Errorf("got %+v", err)
			}
		})
	}
}

// TestSigned: headers alone tell what cannot be Meta's.
func TestSigned(t *testing.T) {
	for _, row := range []struct {
		name, header, secret string
		ok                   bool
	}{
		{"well-formed", "sha256=" + strings.Repeat("0a", 32), "s", true},
		{"none", "", "s", false},
		{"too short", "sha256=0a", "s", false},
		{"no hex", "sha256=" + strings.Repeat("zz", 32), "s", false},
		{"another hash", "sha1=" + strings.Repeat("0a", 32), "s", false},
		{"no secret", "sha256=" + strings.Repeat("0a", 32), "", false},
	} {
		p := New(Config{AppSecret: row.secret})
		if err := p.Signed(http.Header{"X-Hub-Signature-256": {row.header}}); (err == nil) != row.ok || err != nil && !errors.Is(err, tidemark.ErrUnauthorized) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
