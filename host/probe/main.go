//go:build !js

package main

func main() { panic("probe runs inside workerd only") }
