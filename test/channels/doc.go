// Package channels proves messaging platforms end to end: the real binary and the real Worker in workerd. The other side
// is a fake of Meta's Graph API over HTTP (internal/graph), not Meta. Begin with the tests of one platform here.
package channels
