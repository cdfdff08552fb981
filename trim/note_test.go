package trim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// The hash in the note of a picture is that of its file, whatever its size and where it stands.
func TestPictureHash(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 300, 24 << 10, 24<<10 + 1, 100_000} {
		file := bytes.Repeat([]byte{1, 2, 3, 5, 8, 13, 21}, n/7+1)[:n]
		block := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(file) + `"}}`
		in := `{"type":"user","message":{"role":"user","content":[` + block + `]}}` + "\n"
		out, cuts, _ := trimmed(t, []byte(in), Options{How: "show"})
		sum := fmt.Sprintf("%x", sha256.Sum256(file))[:12]
		want := fmt.Sprintf("[Image removed: image/png, %s bytes, sha256 %s; show %s]", thousands(int64(n)), sum, sum)
		if !strings.Contains(string(out), want) || len(cuts) != 1 || cuts[0].Handle != sum {
			t.Errorf("%d bytes: no %s in %.300s", n, want, out)
		}
		laws(t, []byte(in), Options{})
	}
}

// A way back that is too long for a note is left out, the handle is not: half a command would mislead.
func TestLongWayBack(t *testing.T) {
	in := called("t1", "Bash", `{"command":"ls"}`) + "\n" + result("t1", `"`+long(600)+`"`) + "\n"
	for how, want := range map[string]string{
		strings.Repeat("é", maxHow):   "; Bash ls; " + strings.Repeat("é", maxHow) + " ",
		strings.Repeat("é", maxHow+1): "; Bash ls; handle ",
	} {
		out, _ := laws(t, []byte(in), Options{How: how})
		if !strings.Contains(string(out), want) || strings.Contains(string(out), "…") {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

// A cut that is kept has the name of what was cut, whether its note says how to read that or not.
func TestHandleWithoutWayBack(t *testing.T) {
	body := `"` + long(600) + `"`
	in := called("t1", "Bash", `{"command":"ls"}`) + "\n" + result("t1", body) + "\n"
	_, cuts, _ := trimmed(t, []byte(in), Options{})
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))[:12]
	if len(cuts) != 1 || cuts[0].Handle != want {
		t.Errorf("want one cut called %s, got %+v", want, cuts)
	}
}
