//go:build !unix

package main

import "os"

// terminalWidth is 0: nobody asked for it on this system yet.
func terminalWidth(*os.File) int { return 0 }
