package session_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/compaction"
	"github.com/tidemark-ai/tidemark/session"
)

// TestDocumentsArePagedOut: a document that a person sent leaves as an image does, and recall brings it back as it was;
// what is larger than recall gives back stays in each request.
func TestDocumentsArePagedOut(t *testing.T) {
	d := newDesk(t, paged, &compaction.Paging{})
	pdf := `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("QUJD", 2000) + `"},"title":"tides"}`
	plain := `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + strings.Repeat("high and low. ", 300) + `"}}`
	large := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("QUJD", compaction.RecallBytes/4) + `"}}`
	m := parsed(t, `{"role":"user","content":[{"type":"text","text":"look at these"},`+pdf+`,`+plain+`,`+large+`]}`)
	if got := d.post(session.Input{Message: m}); strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
	d.reads(0, 14)
	first := d.request(-1).Messages[0].Content
	if got := string(first[3].AppendJSON(nil)); got != large {
		t.Errorf("in the place of what recall cannot give back stands %.200s", got)
	}
	for n, want := range map[int]string{1: pdf, 2: plain} {
		if first[n].Type != tidemark.TypeText || !strings.HasPrefix(first[n].Text, "[Paged out: ") {
			t.Fatalf("in the place of document %d stands %.200s", n, first[n].AppendJSON(nil))
		}
		d.say("recall " + handleIn(t, first[n].Text))
		last := d.request(-1)
		back := last.Messages[len(last.Messages)-1].Content[0]
		if back.IsError || len(back.Content) != 1 || string(back.Content[0].AppendJSON(nil)) != want {
			t.Errorf("recall gives %.200s", back.AppendJSON(nil))
		}
	}
	d.sent()
}
