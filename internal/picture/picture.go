// Package picture reads how large an image is from its first bytes. It decodes no pixels. Begin with [Size].
package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// HeadBytes is how much of a file is looked at: a JPEG may have a preview and a profile before its size.
const HeadBytes = 128 << 10

// maxSide bounds what is taken for a size: more is a broken file.
const maxSide = 1 << 20

// Size returns width and height in pixels of a PNG, JPEG, GIF or WebP that begins so; zeros when that does not tell.
func Size(head []byte) (width, height int) {
	head = head[:min(len(head), HeadBytes)]
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		width, height = png(head)
	case bytes.HasPrefix(head, []byte("\xff\xd8")):
		width, height = jpeg(head[2:])
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		if len(head) >= 10 {
			width, height = int(binary.LittleEndian.Uint16(head[6:])), int(binary.LittleEndian.Uint16(head[8:]))
		}
	case len(head) >= 16 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		width, height = webp(head[12:])
	}
	if width <= 0 || height <= 0 || width > maxSide || height > maxSide {
		return 0, 0
	}
	return width, height
}

// OfBase64 is [Size] of a file in base64, of which the beginning suffices. Escapes of a JSON string may stand in it.
func OfBase64(data []byte) (width, height int) {
	const group = 4
	data = data[:min(len(data), (HeadBytes/3+1)*group)]
	if bytes.IndexByte(data, '\\') >= 0 {
		data = bytes.ReplaceAll(data, []byte(`\`), nil)
	}
	head := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, _ := base64.StdEncoding.Decode(head, data[:len(data)/group*group]) // what stands before an error is right
	return Size(head[:n])
}

// png reads the first chunk, IHDR (https://www.w3.org/TR/png/#11IHDR).
func png(b []byte) (width, height int) {
	const at = 16
	if len(b) < at+8 || string(b[12:at]) != "IHDR" {
		return 0, 0
	}
	return int(binary.BigEndian.Uint32(b[at:])), int(binary.BigEndian.Uint32(b[at+4:]))
}

// jpeg looks for the frame header among the segments (https://www.w3.org/Graphics/JPEG/itu-t81.pdf, B.1).
func jpeg(b []byte) (width, height int) {
	for len(b) >= 4 {
		if b[0] != 0xff {
			return 0, 0
		}
		kind := b[1]
		switch {
		case kind == 0xff: // fill
			b = b[1:]
			continue
		case kind == 1 || kind >= 0xd0 && kind <= 0xd7: // without a length
			b = b[2:]
			continue
		case kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc:
			if len(b) < 9 {
				return 0, 0
			}
			return int(binary.BigEndian.Uint16(b[7:])), int(binary.BigEndian.Uint16(b[5:]))
		case kind == 0xd9 || kind == 0xda: // the end, or the scan: no frame came
			return 0, 0
		}
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if n > len(b) {
			return 0, 0
		}
		b = b[n:]
	}
	return 0, 0
}

// webp reads the first chunk of the three kinds (https://developers.google.com/speed/webp/docs/riff_container).
func webp(b []byte) (width, height int) {
	const head = 8
	chunk := b[min(len(b), head):]
	switch kind := string(b[:4]); {
	case kind == "VP8X" && len(chunk) >= 10:
		return 1 + little24(chunk[4:]), 1 + little24(chunk[7:])
	case kind == "VP8L" && len(chunk) >= 5 && chunk[0] == 0x2f:
		bits := binary.LittleEndian.Uint32(chunk[1:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
	case kind == "VP8 " && len(chunk) >= 10 && bytes.Equal(chunk[3:6], []byte{0x9d, 0x01, 0x2a}):
		return int(binary.LittleEndian.Uint16(chunk[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(chunk[8:]) & 0x3fff)
	}
	return 0, 0
}

func little24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
