package logtest

import (
	"bytes"
	"testing"
)

func TestWrite(t *testing.T) {
	for _, o := range []Options{{}, {Seed: 3, Hostile: true, Compactions: 2}, {Profile: Tools}, {Profile: Images}, {Profile: Talking, Bytes: 100}} {
		var a, b bytes.Buffer
		if err := Write(&a, o); err != nil {
			t.Fatal(err)
		}
		if err := Write(&b, o); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%+v: two logs of one seed differ", o)
		}
		if int64(a.Len()) < max(o.Bytes, 100) {
			t.Errorf("%+v: %d bytes", o, a.Len())
		}
		if n := bytes.Count(a.Bytes(), []byte("compact_boundary")); n != o.Compactions {
			t.Errorf("%+v: %d compactions", o, n)
		}
	}
}
