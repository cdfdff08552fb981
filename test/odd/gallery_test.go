package odd

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// still is a picture in base64, or what somebody sends as one.
type still struct{ media, data string }

// gallery has pictures that can be read and such that cannot.
var gallery = hang()

func hang() []still {
	pngOf := func(w, h int) []byte {
		m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.White, color.Black})
		for i := range m.Pix {
			m.Pix[i] = uint8(i / 7 % 2)
		}
		var b bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m); err != nil {
			panic(fmt.Sprintf("draw %d × %d: %v", w, h, err)) // it is of our making
		}
		return b.Bytes()
	}
	small := image.NewPaletted(image.Rect(0, 0, 30, 20), color.Palette{color.White, color.Black})
	var jpg, anim bytes.Buffer
	if err := jpeg.Encode(&jpg, small, nil); err != nil {
		panic(err) // it is of our making
	}
	if err := gif.Encode(&anim, small, nil); err != nil {
		panic(err) // it is of our making
	}
	good := pngOf(60, 40)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-20] ^= 0xff
	text := base64.StdEncoding.EncodeToString
	return []still{
		{"image/png", text(good)}, {"image/png", text(pngOf(10, 10))}, {"image/jpeg", text(jpg.Bytes())}, {"image/gif", text(anim.Bytes())},
		{"image/png", text(pngOf(2400, 30))}, {"image/png", text(pngOf(30, 2100))}, // too large beside many others
		{"image/png", text(pngOf(8200, 10))},                         // too large
		{"image/png", text(jpg.Bytes())}, {"image/jpeg", text(good)}, // called another
		{"image/png", text(good[:len(good)/2])},                          // cut off
		{"image/png", text(good[:len(good)-12])},                         // without its end
		{"image/png", text(flipped)},                                     // damaged
		{"image/jpeg", text(jpg.Bytes()[:jpg.Len()/2])},                  // cut off
		{"image/gif", text(anim.Bytes()[:anim.Len()-4])},                 // cut off
		{"image/png", text([]byte("\x89PNG\r\n\x1a\n, or so they say"))}, // none
		{"image/png", "not base64!"}, {"image/png", ""},                  // none
		{"image/svg+xml", text([]byte("<svg/>"))}, {"image/bmp", text([]byte("BM......"))}, // of kinds that nobody takes
	}
}
