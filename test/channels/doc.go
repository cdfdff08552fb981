// Package channels proves messaging platforms end to end: the real binary and the real Worker in
// workerd, with a fake of Meta's Graph API over HTTP on the other side.
package channels
