package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Compose gives characters that are written in several ways one form, so that a text in one is found by words in
// another: a letter and its mark are one character (NFC of Latin, Greek and Cyrillic letters, of Hangul and of
// kana; macOS writes names of files the other way), full width letters and digits are plain ones, and I is i, with
// a dot or without. All of NFC would change more (RATIONALE, "Why are letters and marks joined by a table of our own?").
func Compose(text string) string {
	if !composes(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	last := rune(-1)
	for _, r := range text {
		if r >= 0xfe00 && r <= 0xfe0f { // how to draw what stands before it
			continue
		}
		r = usual(r)
		if last >= 0 {
			if c := joined(last, r); c >= 0 {
				last = c
				continue
			}
			b.WriteRune(last)
		}
		last = r
	}
	if last >= 0 {
		b.WriteRune(last)
	}
	return b.String()
}

// composes reports a text that Compose changes.
func composes(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			for _, r := range text[i:] {
				if r >= 0x300 && (r < 0x370 || r >= 0x1100 && r < 0x1200 || r == 0x3099 || r == 0x309a || r >= 0xfe00 && r <= 0xfe0f) || usual(r) != r {
					return true
				}
			}
			return false
		}
	}
	return false
}

// usual is the form of a character that others are found by.
func usual(r rune) rune {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // full width
		return r - 0xff01 + '!'
	case r == 'İ':
		return 'I'
	case r == 'ı':
		return 'i'
	case r == 'ς':
		return 'σ'
	}
	return r
}

// joined returns the character that a letter and a mark make, -1 for none.
func joined(letter, mark rune) rune {
	const (
		firstL, firstV, firstT, firstLVT = 0x1100, 0x1161, 0x11a7, 0xac00 // https://www.unicode.org/versions/latest/core-spec/chapter-3/#G24646
		countL, countV, countT           = 19, 21, 28
	)
	l, v, t, lv := letter-firstL, mark-firstV, mark-firstT, letter-firstLVT
	switch {
	case l >= 0 && l < countL && v >= 0 && v < countV:
		return firstLVT + (l*countV+v)*countT
	case lv >= 0 && lv < countL*countV*countT && lv%countT == 0 && t > 0 && t < countT:
		return letter + t
	case mark == 0x307 && (letter == 'i' || letter == 'I'):
		return letter
	}
	low := unicode.ToLower(letter)
	pairs := marked(mark)
	for len(pairs) > 0 {
		from, n := utf8.DecodeRuneInString(pairs)
		to, m := utf8.DecodeRuneInString(pairs[n:])
		if pairs = pairs[n+m:]; from != low {
			continue
		}
		if low != letter {
			return unicode.ToUpper(to)
		}
		return to
	}
	return -1
}

// marked returns the letters that take a mark, each before what it becomes.
func marked(mark rune) string {
	switch mark {
	case '\u0300':
		return "aàeèiìoòuùüǜnǹеѐиѝēḕōṑwẁâầăằêềôồơờưừyỳ"
	case '\u0301':
		return "aáeéiíoóuúyýcćlĺnńrŕsśzźüǘgǵåǻæǽøǿϊΐαάεέηήιίϋΰοόυύωώгѓкќçḉēḗïḯkḱmḿõṍōṓpṕũṹwẃâấăắêếôốơớưứ"
	case '\u0302':
		return "aâeêiîoôuûcĉgĝhĥjĵsŝwŵyŷzẑạậẹệọộ"
	case '\u0303':
		return "aãnñoõiĩuũvṽâẫăẵeẽêễôỗơỡưữyỹ"
	case '\u0304':
		return "aāeēiīoōuūüǖäǟȧǡæǣǫǭöȫõȭȯȱyȳgḡḷḹṛṝ"
	case '\u0306':
		return "aăeĕgğiĭoŏuŭийуўȩḝạặ"
	case '\u0307':
		return "cċeėgġzżaȧoȯbḃdḋfḟhḣmṁnṅpṗrṙsṡśṥšṧṣṩtṫwẇxẋyẏſẛ"
	case '\u0308':
		return "aäeëiïoöuüyÿιϊυϋеёіїhḧõṏūṻwẅxẍtẗ"
	case '\u0309':
		return "aảâẩăẳeẻêểiỉoỏôổơởuủưửyỷ"
	case '\u030a':
		return "aåuůwẘyẙ"
	case '\u030b':
		return "oőuű"
	case '\u030c':
		return "cčdďeělľnňrřsštťzžaǎiǐoǒuǔüǚgǧkǩjǰhȟ"
	case '\u030f':
		return "aȁeȅiȉoȍrȑuȕ"
	case '\u0311':
		return "aȃeȇiȋoȏrȓuȗ"
	case '\u031b':
		return "oơuư"
	case '\u0323':
		return "bḅdḍhḥkḳlḷmṃnṇrṛsṣtṭvṿwẉzẓaạeẹiịoọơợuụưựyỵ"
	case '\u0324':
		return "uṳ"
	case '\u0325':
		return "aḁ"
	case '\u0326':
		return "sștț"
	case '\u0327':
		return "cçgģkķlļnņrŗsştţeȩdḑhḩ"
	case '\u0328':
		return "aąeęiįuųoǫ"
	case '\u032d':
		return "dḓeḙlḽnṋtṱuṷ"
	case '\u032e':
		return "hḫ"
	case '\u0330':
		return "eḛiḭuṵ"
	case '\u0331':
		return "bḇdḏkḵlḻnṉrṟtṯzẕhẖ"
	case '\u3099':
		return "かがきぎくぐけげこごさざしじすずせぜそぞただちぢつづてでとどはばひびふぶへべほぼうゔゝゞカガキギクグケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドハバヒビフブヘベホボウヴヽヾ"
	case '\u309a':
		return "はぱひぴふぷへぺほぽハパヒピフプヘペホポ"
	}
	return ""
}
