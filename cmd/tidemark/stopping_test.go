package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-ai/tidemark/cmd/cli"
)

// TestStoppingIsSaid: at the end of the server streams of events end with an event that says so, those of two
// conversations alike, and not with a cut; a socket ends with the reason.
func TestStoppingIsSaid(t *testing.T) {
	home := t.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	ended := make(chan struct{})
	var out bytes.Buffer
	go func() {
		defer close(ended)
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: []string{"TIDEMARK_HOME=" + home, "TIDEMARK_MODEL=offline"}}
		if code := m.Run(ctx, commands(), []string{"serve", "--listen", "127.0.0.1:0"}); code != cli.ExitOK {
			t.Errorf("serve: exit %d\n%s", code, out.String())
		}
	}()
	url := ""
	for url == "" {
		select {
		case <-ended:
			t.Fatalf("the server ended: %s", out.String())
		case <-time.After(10 * time.Millisecond): // a server starts; nothing tells us when
		}
		url = cli.ReadServerFile(home).URL
	}
	var streams []*bufio.Reader
	for _, key := range []string{"main", "second"} {
		r, err := http.Post(url+"/v1/sessions/"+key+"/messages", "application/json", strings.NewReader(`{"text":"hello"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if r, err = http.Get(url + "/v1/sessions/" + key + "/events"); err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b := bufio.NewReader(r.Body)
		if line, err := b.ReadString('\n'); err != nil || !strings.Contains(line, "hello") {
			t.Fatalf("%s: %q, %v", key, line, err)
		}
		streams = append(streams, b)
	}
	ws, _, err := websocket.Dial(t.Context(), url+"/ws?session=main", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	stop()
	for err == nil {
		_, _, err = ws.Read(t.Context())
	}
	var end websocket.CloseError
	if !errors.As(err, &end) || end.Code != websocket.StatusGoingAway || end.Reason != "the server is stopping" {
		t.Errorf("the socket ended with %v", err)
	}
	for i, b := range streams {
		rest, err := io.ReadAll(b)
		if err != nil || !strings.Contains(string(rest), "event: error") || !strings.Contains(string(rest), "the server is stopping") {
			t.Errorf("stream %d ended with %q, %v", i, rest, err)
		}
	}
	<-ended
}
