package paging

// Part says what of a message a [Page] is.
type Part uint8

// The parts of a message that may leave.
const (
	Result Part = iota // the content of a tool's result
	Input              // the input of a call
	Image              // an image or an inline document that stands by itself in a message of the user
)

var partNames = [...]string{"result", "input", "image"}

// String is the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return "part"
}
