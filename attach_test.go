package tidemark_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
)

// TestAttach: what a model reads, as which block, and what it does not.
func TestAttach(t *testing.T) {
	const most = 256 << 10
	code := base64.StdEncoding.EncodeToString
	long := code([]byte(strings.Repeat("x", most)))
	for _, row := range []struct {
		name, media, title, coded, want string
		is                              error
	}{
		{"picture", "image/png", "a.png", "AAAA", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`, nil},
		{"PDF", "application/pdf", "a.pdf", "AAA=", `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAA="},"title":"a.pdf"}`, nil},
		{"PDF without a name", "application/pdf", "", "AA==", `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="}}`, nil},
		{"text", "text/markdown", "a\nb\u2028c", code([]byte("# \"ö\"\n")), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# \"ö\"\n"},"title":"a b c"}`, nil},
		{"JSON", "application/json", "", code([]byte(`{}`)), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"{}"}}`, nil},
		{"picture of another type", "image/tiff", "", "AAAA", "", tidemark.ErrInvalid},
		{"program", "application/octet-stream", "", "AAAA", "", tidemark.ErrInvalid},
		{"nothing", "image/png", "", "", "", tidemark.ErrInvalid},
		{"no base64", "image/png", "", "%%%%", "", tidemark.ErrInvalid},
		{"cut base64", "image/png", "", "AAA", "", tidemark.ErrInvalid},
		{"quote", "image/png", "", `AA"A`, "", tidemark.ErrInvalid},
		{"text with NUL", "text/plain", "", code([]byte("a\x00b")), "", tidemark.ErrInvalid},
		{"text that is not UTF-8", "text/plain", "", code([]byte("a\xff")), "", tidemark.ErrInvalid},
		{"text too long", "text/plain", "", code([]byte(strings.Repeat("x", most+1))), "", tidemark.ErrTooLarge},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, err := tidemark.Attach(row.media, row.title, row.coded)
			if !errors.Is(err, row.is) || err == nil && string(b.AppendJSON(nil)) != row.want {
				t.Errorf("%s, %v, want %s, %v", b.AppendJSON(nil), err, row.want, row.is)
			}
			size := int64(base64.StdEncoding.DecodedLen(len(row.coded)))
			if err == nil && !tidemark.Attachable(row.media, size) || err != nil && errors.Is(err, tidemark.ErrTooLarge) && tidemark.Attachable(row.media, size) {
				t.Errorf("beforehand it was said otherwise: %v", err)
			}
		})
	}
	if b, err := tidemark.Attach("text/plain", strings.Repeat("ö", 200), long); err != nil || len(b.AppendJSON(nil)) > most+300 || !tidemark.Attachable("text/plain", most) {
		t.Errorf("the longest text: %v", err)
	}
	if tidemark.Attachable("image/tiff", 1) || tidemark.Attachable("image/png", 0) {
		t.Error("what no model reads could be attached")
	}
}
