package json

import "testing"

func TestCutString(t *testing.T) {
	for _, row := range []struct {
		name, data, text, rest string
		ok                     bool
	}{
		{"plain", `"tide",1`, "tide", ",1", true},
		{"empty", `""`, "", "", true},
		{"escapes", `"a\"b\\"}`, `a"b\`, "}", true},
		{"a code point", `"\u00e9"`, "é", "", true},
		{"cut off", `"tide`, "", "", false},
		{"cut off behind a backslash", `"tide\`, "", "", false},
		{"a bad escape", `"\q"`, "", "", false},
		{"a control character", "\"a\nb\"", "", "", false},
		{"not UTF-8", "\"\xff\"", "", "", false},
		{"no string", `1`, "", "", false},
		{"nothing", ``, "", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			text, raw, rest, ok := CutString([]byte(row.data))
			if ok != row.ok || ok && (text != row.text || string(rest) != row.rest || string(raw)+string(rest) != row.data) {
				t.Errorf("text %q, raw %q, rest %q, %v", text, raw, rest, ok)
			}
		})
	}
}

// FuzzCutString: what is cut off decodes to the same text, and together with the rest is what was there.
func FuzzCutString(f *testing.F) {
	f.Add([]byte(`"a\n" x`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, raw, rest, ok := CutString(data)
		if !ok {
			return
		}
		var want string
		if err := Unmarshal(raw, &want); err != nil || want != text || string(raw)+string(rest) != string(data) {
			t.Errorf("%q: text %q, want %q, %v", data, text, want, err)
		}
	})
}
