package transcript

import (
	"bytes"
	stdjson "encoding/json" // the scanner's judge must not be our own wrapper
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/jsonscan"
)

// scanned scans a whole input as one line that is not the first.
func scanned(data []byte) (value Field, fields, inner []Field, err error) {
	l := new(parser).line(jsonscan.Line{Number: 2, Raw: data})
	return l.Value, l.Fields, l.Inner, l.Err
}

// stdFields lists the members of an object as encoding/json finds them.
func stdFields(data []byte, base int64) []Field {
	d := stdjson.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != stdjson.Delim('{') {
		return nil
	}
	var out []Field
	for d.More() {
		before := d.InputOffset()
		key, err := d.Token()
		if err != nil {
			return nil
		}
		quote := before + int64(bytes.IndexByte(data[before:], '"'))
		var raw stdjson.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil
		}
		end := d.InputOffset()
		name := key.(string)
		out = append(out, Field{name, base + quote, base + end - int64(len(raw)), base + end, kindOf(raw[0])})
	}
	return out
}

// checkScan holds the law of the scanner on one input: the same verdict as encoding/json, the same extents of all fields.
func checkScan(t *testing.T, data []byte) {
	t.Helper()
	blank := len(bytes.Trim(data, " \t\r\n")) == 0
	valid := stdjson.Valid(data)
	value, fields, inner, err := scanned(data)
	if blank {
		if err != nil || value.Kind != 0 {
			t.Fatalf("blank input gives %v, %v", value, err)
		}
		return
	}
	if (err == nil) != valid {
		t.Fatalf("scanner says %v, encoding/json says valid=%v: %.200q", err, valid, data)
	}
	if !valid {
		return
	}
	if got, want := string(data[value.Start:value.End]), strings.Trim(string(data), " \t\r\n"); got != want {
		t.Fatalf("value %.100q, want %.100q", got, want)
	}
	if value.Kind == Object {
		checkFields(t, data, value, fields, inner)
	}
}

func checkFields(t *testing.T, data []byte, value Field, fields, inner []Field) {
	t.Helper()
	want := stdFields(data[value.Start:value.End], value.Start)
	if len(want) > MaxFields {
		return
	}
	if !slices.Equal(fields, want) {
		t.Fatalf("fields\n%v, want\n%v\nof %.300q", fields, want, data)
	}
	var wantInner []Field
	if f, ok := lookup(want, "message"); ok && f.Kind == Object {
		wantInner = stdFields(data[f.Start:f.End], f.Start)
	}
	if len(wantInner) <= MaxFields && !slices.Equal(inner, wantInner) {
		t.Fatalf("fields of message\n%v, want\n%v\nof %.300q", inner, wantInner, data)
	}
}

var scanCases = []string{
	``, ` `, "\t\r\n", `{}`, `[]`, ` { } `, `null`, `nul`, `nulll`, `true`, `truE`, `false`, `"a"`, `"`, `"\`, `"\"`, `"\u12`, `"\u12g4"`,
	"\"\\u\x11234\"", `"\ud800"`, `"\q"`, "\"a\nb\"", "\"\x00\"", "\x00", "\"\x7f\xff\xfe\"", "\"\u2028\"",
	`0`, `-`, `-0`, `01`, `1.`, `1.5`, `.5`, `1e`, `1e+`, `1e400`, `1E-9`, `+1`, `9007199254740993`, `0x1`, `1 2`, `--1`,
	`{"a":1}`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1]`, `[1}`, `[1,]`, `[,1]`, `[1 2]`, `[[],{}]`,
	`{"type":"user","message":{"role":"user","content":"x"},"uuid":"u"}`,
	`{"message":{"a":1},"message":[1],"x":{"message":{"deep":1}}}`, `{"message":1,"message":{"b":2}}`, `{"message":{"message":{"c":1}}}`,
	`{"s\u0075mmary":1,"ty\"pe":2,"\ud83d\ude00":3,"":4}`, "{\"\xff\":1,\"caf\u00e9\":2}",
	` { "a" : [ 1 , { "b" : [ ] } ] , "c" : "d" } `, `{"a":{"b":{"c":"\\\"}"}}}`, `{"a":"}"}`, `[1]x`, `{}{}`,
	`{"` + strings.Repeat("0", 240) + "\xba\xba\xba\xba\xba\xba" + `":0}`, // longer once decoded
	`{"` + strings.Repeat("k", 300) + `":1}`, `{"` + strings.Repeat(`\u0041`, 256) + `":1}`, `{"` + strings.Repeat(`\u0041`, 257) + `":1}`,
	strings.Repeat("[", jsonscan.MaxDepth) + strings.Repeat("]", jsonscan.MaxDepth), strings.Repeat("[", jsonscan.MaxDepth+1) + strings.Repeat("]", jsonscan.MaxDepth+1),
	strings.Repeat(`{"a":`, jsonscan.MaxDepth) + "1" + strings.Repeat("}", jsonscan.MaxDepth), strings.Repeat(`{"a":`, jsonscan.MaxDepth+1) + "1" + strings.Repeat("}", jsonscan.MaxDepth+1),
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	for i, c := range scanCases {
		t.Run(fmt.Sprintf("%d %.20q", i, c), func(t *testing.T) { checkScan(t, []byte(c)) })
	}
}

func TestScannerAgreesOnRandomJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		doc := randomValue(r, 4)
		checkScan(t, []byte(doc))
		// One damaged byte must give the same verdict too.
		bad := []byte(doc)
		bad[r.IntN(len(bad))] = "\"\\{}[],:0 x\x00\xff"[r.IntN(13)]
		checkScan(t, bad)
		checkScan(t, []byte(doc[:r.IntN(len(doc))]))
	}
}

// randomValue writes JSON with odd spaces, keys, numbers and strings.
func randomValue(r *rand.Rand, depth int) string {
	sp := func() string { return strings.Repeat([]string{"", " ", "\t", "\r"}[r.IntN(4)], r.IntN(2)) }
	kind := r.IntN(10)
	if depth == 0 {
		kind %= 6
	}
	switch kind {
	case 0:
		return []string{"null", "true", "false"}[r.IntN(3)]
	case 1, 2:
		return []string{"0", "-0.0", "1e400", "9007199254740993", "12.50E+3", "-7"}[r.IntN(6)]
	case 3, 4, 5:
		return randomString(r)
	case 6:
		parts := make([]string, r.IntN(5))
		for i := range parts {
			parts[i] = sp() + randomValue(r, depth-1) + sp()
		}
		return "[" + strings.Join(parts, ",") + sp() + "]"
	}
	parts := make([]string, r.IntN(6))
	for i := range parts {
		key := randomString(r)
		if r.IntN(2) == 0 {
			key = []string{`"message"`, `"type"`, `"content"`, `"m\u0065ssage"`}[r.IntN(4)]
		}
		parts[i] = sp() + key + sp() + ":" + sp() + randomValue(r, depth-1) + sp()
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func randomString(r *rand.Rand) string {
	var b strings.Builder
	b.WriteByte('"')
	for range r.IntN(12) {
		b.WriteString([]string{"a", "plain text ", `\"`, `\\`, `\n`, `\ud800`, `\u00e9`, "é", "\u2028", "😀", "\xff", "}", "]", ",", "/", "\x7f"}[r.IntN(16)])
	}
	b.WriteByte('"')
	return b.String()
}

func TestFieldsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"a"`)
	for i := range 5 * MaxFields {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	for range 3 * MaxFields {
		b.WriteString(`,"uuid":"u1"`)
	}
	b.WriteString(`,"uuid":"u2","type":"user"}`)
	_, fields, _, err := scanned([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(fields) > MaxFields+100 {
		t.Errorf("%d fields are listed", len(fields))
	}
	for name, want := range map[string]string{"type": `"user"`, "uuid": `"u2"`} {
		f, ok := lookup(fields, name)
		if got := b.String()[f.Start:f.End]; !ok || got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, c := range scanCases[:len(scanCases)-4] {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkScan(t, data) })
}
