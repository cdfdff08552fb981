package picture_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/picture"
)

// encoded is an image of a size in each form that the standard library writes, and JPEG with a large profile before
// the frame.
func encoded(t testing.TB, w, h int) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	out := map[string][]byte{}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		out[name] = b.Bytes()
	}
	profile := append([]byte{0xff, 0xd8, 0xff, 0xe2, 0xea, 0x62}, make([]byte, 0xea62-2)...)
	out["jpeg with a profile"] = append(profile, out["jpeg"][2:]...)
	return out
}

func TestSize(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {800, 600}, {3, 4000}} {
		for name, file := range encoded(t, size[0], size[1]) {
			if w, h := picture.Size(file); w != size[0] || h != size[1] {
				t.Errorf("%s of %v: %d x %d", name, size, w, h)
			}
			text := base64.StdEncoding.EncodeToString(file)
			for _, s := range []string{text, strings.ReplaceAll(text, "/", `\/`), strings.TrimRight(text, "="), text + "!"} {
				if w, h := picture.OfBase64([]byte(s)); w != size[0] || h != size[1] {
					t.Errorf("%s of %v in base64 %.40s: %d x %d", name, size, s, w, h)
				}
			}
		}
	}
}

// TestSizeOfWebP: the first bytes of files in each of its three forms, which the standard library does not write.
func TestSizeOfWebP(t *testing.T) {
	for name, row := range map[string]struct {
		head string
		w, h int
	}{
		"lossy":    {"52494646 24000000 57454250 56503820 18000000 300100 9d012a 2003 5802", 800, 600},
		"lossless": {"52494646 1c000000 57454250 5650384c 0f000000 2f 1fc39500", 800, 600},
		"extended": {"52494646 1c000000 57454250 56503858 0a000000 10000000 1f0300 570200", 800, 600},
		"other":    {"52494646 1c000000 57454250 58585858 0a000000 10000000 1f0300 570200", 0, 0},
	} {
		head, err := hex.DecodeString(strings.ReplaceAll(row.head, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if w, h := picture.Size(head); w != row.w || h != row.h {
			t.Errorf("%s: %d x %d, want %d x %d", name, w, h, row.w, row.h)
		}
	}
}

// FuzzSize: no bytes make it fail, and what it says is a size or nothing.
func FuzzSize(f *testing.F) {
	for _, file := range encoded(f, 3, 2) {
		f.Add(file[:min(len(file), 200)])
	}
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, h := picture.Size(data); (w <= 0) != (h <= 0) {
			t.Errorf("%d x %d", w, h)
		}
		picture.OfBase64(data)
		for n := range min(len(data), 64) { // cut anywhere
			picture.Size(data[:n])
		}
	})
}
