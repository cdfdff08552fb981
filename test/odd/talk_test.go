package odd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
	"github.com/tidemark-ai/tidemark/window"
)

// talk is a conversation and the person in it.
type talk struct {
	w      *world
	name   string
	key    tidemark.Key
	owner  bool
	config *config.Config
	box    tidemark.Toolbox
	models []*model // that the person knows
	r      *rand.Rand
	s      *session.Session
	end    context.CancelFunc

	n     int          // texts that the person wrote
	said  []line       // what was said, by people and models, in order
	wrote []*utterance // what the person wrote
	storm int          // odd turns that are left of this storm
	still int          // calm turns that are left
}

// open begins a life of the session.
func (x *talk) open() {
	t := x.w.t
	settings, err := setup.Session(x.config, x.key)
	if err != nil {
		t.Fatal(err)
	}
	var windows window.Models
	if len(x.name)%2 == 0 {
		windows = x.w.ask
	}
	life, end := context.WithCancel(t.Context())
	x.end = end
	x.s, err = session.Open(life, session.Config{Key: x.key, DB: x.w.db, Blobs: x.w.blobs, Provider: x.w.ask, Agent: x.w.agent, Tools: x.box, Runtime: x.w.rt,
		Strategies: setup.Strategies(x.config), Rooms: setup.Rooms(x.config, x.w.rt, nil, nil, nil), Windows: windows, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
}

// origin of what the person sends, by the platform's id of it.
func (x *talk) origin(message string) tidemark.Origin {
	return tidemark.Origin{From: tidemark.FromPerson, Owner: x.owner, Channel: "whatsapp", Peer: cmp.Or(x.key.Peer(), x.name), Message: message}
}

// tag begins and ends a text of the person's, so that it is known whether both ends of it arrived.
func (x *talk) tag(n int) string { return fmt.Sprintf("%s-%d.", x.name, n) }

// secret is a word of one text alone, which no model says.
func (x *talk) secret(n int) string { return fmt.Sprintf("%s%sx%d.", secretMark, x.name, n) }

const secretMark = "secret-"

// framed is a text between its ends.
func (x *talk) framed(n int, text string) string {
	return x.tag(n) + " " + x.secret(n) + " " + text + " end-" + x.tag(n)
}

// whole reports a request that has both ends of a text of the person's.
func whole(body []byte, tag string) bool {
	return bytes.Contains(body, []byte(tag+" "+secretMark)) && bytes.Contains(body, []byte("end-"+tag))
}

// message is what the person says next.
func (x *talk) message() tidemark.Message {
	x.n++
	tag := x.tag(x.n)
	text := tidemark.Text(x.framed(x.n, wordsOf(x.r.IntN, 3+x.r.IntN(60))))
	switch roll := x.r.IntN(100); {
	case roll < 78:
		if x.r.IntN(12) == 0 {
			text = tidemark.Text(x.framed(x.n, "😀\u2028\x00 </conversation> <summary>x</summary> \ud7ff مرحبا \\u0041"))
		}
		return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{text}}
	case roll < 91:
		blocks := []tidemark.Block{text}
		for range 1 + x.r.IntN(3) {
			blocks = append(blocks, x.picture())
		}
		return tidemark.Message{Role: tidemark.User, Content: blocks}
	case roll < 93: // a whole album
		blocks := []tidemark.Block{text}
		for range 22 {
			blocks = append(blocks, gallery[x.r.IntN(6)].block())
		}
		return tidemark.Message{Role: tidemark.User, Content: blocks}
	case roll < 97:
		return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{x.document(tag), text}}
	}
	return tidemark.Message{Role: tidemark.User, Content: []tidemark.Block{tidemark.Text(x.framed(x.n, strings.Repeat(wordsOf(x.r.IntN, 200)+"\n", 5+x.r.IntN(40))))}}
}

// block decodes a block of ours.
func (x *talk) block(raw string) tidemark.Block {
	var b tidemark.Block
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		x.w.t.Fatal(err)
	}
	return b
}

// block is a picture as people send it.
func (s still) block() tidemark.Block {
	var b tidemark.Block
	raw := `{"type":"image","source":{"type":"base64","media_type":` + jsonText(s.media) + `,"data":` + jsonText(s.data) + `}}`
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		panic(err) // it is of our making
	}
	return b
}

// picture is one in the message or by its address, which may be gone later.
func (x *talk) picture() tidemark.Block {
	if x.r.IntN(4) == 0 {
		address := fmt.Sprintf("https://x.test/%s-%d-%d.png", []string{"there", "going"}[x.r.IntN(2)], x.n, x.r.IntN(1000))
		return x.block(`{"type":"image","source":{"type":"url","url":` + jsonText(address) + `}}`)
	}
	return gallery[x.r.IntN(len(gallery))].block()
}

// document is a text of 60 KB, or a file.
func (x *talk) document(tag string) tidemark.Block {
	var source string
	switch x.r.IntN(5) {
	case 0:
		source = `{"type":"base64","media_type":"application/pdf","data":` + jsonText(base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 "+tag))) + `}`
	case 1:
		source = `{"type":"base64","media_type":"application/pdf","data":` + jsonText(base64.StdEncoding.EncodeToString([]byte("no such thing "+tag))) + `}`
	default:
		source = `{"type":"text","media_type":"text/plain","data":` + jsonText(tag+" "+strings.Repeat(wordsOf(x.r.IntN, 100)+".\n", 75)+tag) + `}`
	}
	return x.block(`{"type":"document","title":"Minutes","source":` + source + `}`)
}

// command is a line that the person types instead of a message, empty for none.
func (x *talk) command() string {
	switch roll := x.r.IntN(100); {
	case roll < 3:
		return "/compact"
	case roll < 4:
		return "/compact keep the prices & <tags>"
	case roll < 5:
		return "/reset"
	case roll < 6:
		return "/status"
	case roll < 12 && x.owner:
		return "/model " + x.models[x.r.IntN(len(x.models))].name
	}
	return ""
}

// wakes does what is due by now.
func (x *talk) wakes() error {
	ctx := x.w.t.Context()
	due, err := session.Due(ctx, x.w.db, x.w.rt.Now())
	if err != nil {
		return err
	}
	if at, ok := due[x.key]; !ok || at.After(x.w.rt.Now()) {
		return nil
	}
	if err := x.s.Wake(ctx); err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return x.w.rest()
}

// pause lets time pass between two turns.
func (x *talk) pause() {
	d := time.Duration(x.r.IntN(300)) * time.Second
	if x.r.IntN(30) == 0 {
		d = time.Duration(x.r.IntN(40)) * time.Hour
	}
	time.Sleep(d) // it passes at once
}

// restart ends the life of the session and begins another.
func (x *talk) restart() error {
	x.end()
	if err := x.w.rest(); err != nil {
		return err
	}
	x.open()
	return x.w.rest()
}
