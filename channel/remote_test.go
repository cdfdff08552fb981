package channel_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/channel"
)

// wire is a way to another object.
type wire struct{ h http.Handler }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// TestPeers: what is asked of another object arrives as it was, and what fails there fails here alike.
func TestPeers(t *testing.T) {
	r := newRig(t, open)
	w := wire{http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) { channel.Peer(rw, q, r.inbox, nil) })}
	p := &channel.Peers{Runtime: r.rt, Transport: func(tidemark.Key) http.RoundTripper { return w }}
	to := tidemark.Address{Platform: "fake", Peer: "1"}
	message := channel.Input{ID: "1", Message: tidemark.NewText(tidemark.User, "hi"), Quoted: "q", Origin: tidemark.Origin{From: tidemark.FromPerson, To: &to}}
	command := channel.Input{ID: "2", Command: tidemark.CommandStatus}
	const key = "agent:main:fake:dm:1"
	for _, in := range []channel.Input{message, command} {
		if err := p.Post(t.Context(), key, in); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.inbox.posts[key]; len(got) != 2 || !reflect.DeepEqual(got[1], command) || got[0].Message.PlainText() != "hi" || *got[0].Origin.To != to || got[0].Quoted != "q" {
		t.Errorf("%+v", got)
	}
	if err := p.Say(t.Context(), key, "s", to, "line"); err != nil || len(r.inbox.said) != 1 {
		t.Errorf("%v, %q", err, r.inbox.said)
	}
	if err := p.Delivered(t.Context(), key, tidemark.Delivery{Ref: "r", Status: "failed", Error: &tidemark.SendError{Class: tidemark.SendClosed, Code: 131047}}); err != nil || r.inbox.status[0].Error.Code != 131047 {
		t.Errorf("%v, %+v", err, r.inbox.status)
	}
	r.inbox.fail = func(tidemark.Key, channel.Input) error { return fmt.Errorf("full: %w", tidemark.ErrBusy) }
	if err := p.Post(t.Context(), key, message); !errors.Is(err, tidemark.ErrBusy) {
		t.Errorf("%v, want busy", err)
	}
	far := &channel.FarDesk{Transport: w, Runtime: r.rt}
	if _, err := far.Who(t.Context(), "fake", []string{"1"}, true); !errors.Is(err, tidemark.ErrInvalid) {
		t.Errorf("a desk where there is none: %v", err)
	}
}

// TestFarDesk: who is let in is asked for once a minute, who is not, or is the owner, each time.
func TestFarDesk(t *testing.T) {
	r := newRig(t, open)
	asked := 0
	d := &channel.FarDesk{Runtime: r.rt, Transport: wire{http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		asked++
		channel.Peer(rw, q, nil, r.book)
	})}}
	who := func(meet bool, want channel.Standing, asks int) {
		t.Helper()
		asked = 0
		for range 3 {
			if p, err := d.Who(t.Context(), "fake", []string{"15550001"}, meet); err != nil || p.Standing != want || p.Name != "15550001" {
				t.Fatalf("%+v, %v", p, err)
			}
		}
		if asked != asks {
			t.Errorf("asked %d times, want %d", asked, asks)
		}
	}
	who(false, channel.Stranger, 3)
	if _, err := d.Knock(t.Context(), channel.Knock{Platform: "fake", Names: []string{"15550001"}, Message: "m"}); err != nil {
		t.Fatal(err)
	}
	list, err := r.book.List(t.Context())
	if err != nil || len(list.Pending) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := r.book.Approve(t.Context(), list.Pending[0].Code, channel.Approved); err != nil {
		t.Fatal(err)
	}
	who(false, channel.Approved, 1)
	r.pass(time.Minute)
	if _, err := r.book.Stand(t.Context(), "fake", []string{"15550001"}, "", channel.Owner); err != nil {
		t.Fatal(err)
	}
	who(false, channel.Owner, 3)
	if _, err := r.book.Stand(t.Context(), "fake", []string{"15550001"}, "", channel.Blocked); err != nil {
		t.Fatal(err)
	}
	who(false, channel.Blocked, 3)
	if err := d.Rename(t.Context(), channel.Alias{Platform: "fake", Old: "15550001", New: "15550002"}); err != nil {
		t.Fatal(err)
	}
	if p, err := d.Who(t.Context(), "fake", []string{"15550002"}, false); err != nil || p.Standing != channel.Blocked {
		t.Errorf("%+v, %v", p, err)
	}
}
